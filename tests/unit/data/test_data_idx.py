from __future__ import annotations

import contextlib
import gzip
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from paceline.data.idx import TYPES, read_idx
from paceline.errors import DataError

CODES = {np.dtype(text): code for code, text in TYPES.items()}


def as_idx(array: np.ndarray) -> bytes:
    dtype = array.dtype.newbyteorder(">")
    header = bytes([0, 0, CODES[np.dtype(dtype)], array.ndim])
    return header + struct.pack(f">{array.ndim}I", *array.shape) + array.astype(dtype).tobytes()


array_kinds = st.sampled_from([np.uint8, np.int8, np.int16, np.int32, np.float32, np.float64])
arrays = array_kinds.flatmap(
    lambda kind: hnp.arrays(kind, hnp.array_shapes(min_dims=1, max_dims=4, max_side=5, min_side=0))
)


@given(arrays, st.booleans())
def test_what_was_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, array: np.ndarray, packed: bool
) -> None:
    path = tmp_path_factory.getbasetemp() / "round-trip"
    content = as_idx(array)
    path.write_bytes(gzip.compress(content, 1) if packed else content)
    found = read_idx(path)
    assert found.dtype == array.dtype
    assert found.dtype.isnative
    np.testing.assert_array_equal(found, array)


sound = as_idx(np.arange(24, dtype=np.uint8).reshape(2, 3, 4))
packed = gzip.compress(sound, mtime=0)  # with a time in it, its tests had other names each second


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "is not an idx file .*nothing"),
        (b"<html>not found</html>", "is not an idx file .*3c 68 74 6d"),
        (b"\0\0\x07\x01" + sound[4:], "is not an idx file"),
        (b"\0\0\x08\0", "is not an idx file"),
        (sound[:9], "ends within its header"),
        (sound[:-1], "should hold 40 bytes for an array of 2x3x4 and holds 39"),
        (sound + b"\0", "and holds 41"),
        (b"\0\0\x08\xff" + b"\xff" * 1020, "should hold"),
        (packed[:-9], "is cut short"),
        (packed[:12], "is cut short"),
        (packed[:3], "is cut short|damaged"),
        (gzip.compress(sound[:-4], mtime=0), "and holds 36"),
        (packed[:-8] + b"\0" * 8, "damaged gzip"),
        (b"\x1f\x8bjunk and more junk", "damaged gzip"),
    ],
)
def test_a_faulty_file_is_named_with_its_fault(tmp_path: Path, content: bytes, why: str) -> None:
    path = tmp_path / "images.gz"
    path.write_bytes(content)
    with pytest.raises(DataError, match=why) as told:
        read_idx(path)
    assert str(path) in str(told.value)
    assert "get the file again" in str(told.value)


def test_missing_files_and_folders_are_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no-such.gz.*no such file"):
        read_idx(tmp_path / "no-such.gz")
    with pytest.raises(DataError, match="is a directory"):
        read_idx(tmp_path)


@given(st.binary(max_size=60))
def test_no_content_is_worse_than_a_data_error(
    tmp_path_factory: pytest.TempPathFactory, junk: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "junk"
    for content in (junk, b"\x1f\x8b" + junk, b"\0\0\x08" + junk):
        path.write_bytes(content)
        with contextlib.suppress(DataError):
            read_idx(path)
