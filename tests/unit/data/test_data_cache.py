from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from paceline.data import cache
from paceline.data.base import Array
from paceline.data.cache import decoded
from paceline.errors import DataError

ROOT = Path(cache.__file__).parents[2]


class Decoder:
    """Decodes a file to its bytes, and counts."""

    def __init__(self) -> None:
        self.calls = 0
        self.__qualname__ = "Decoder"  # as a function has

    def __call__(self, source: Path) -> Array:
        self.calls += 1
        return np.frombuffer(source.read_bytes(), np.uint8).copy()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PACELINE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "decoded"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source"
    path.write_bytes(b"0123456789" * 20)
    return path


def test_decodes_once_then_maps_read_only(source: Path, folder: Path) -> None:
    decode = Decoder()
    first, second = decoded(source, decode), decoded(source, decode)
    assert decode.calls == 1
    for array in (first, second):
        assert isinstance(array, np.memmap)
        assert not array.flags.writeable
        assert array.tobytes() == source.read_bytes()
    assert [path.suffix for path in folder.iterdir()] == [".npy"]


def test_a_changed_source_is_decoded_again_and_its_old_array_dropped(
    source: Path, folder: Path
) -> None:
    decode = Decoder()
    before = decoded(source, decode)
    state = source.stat()
    source.write_bytes(b"9876543210" * 20)
    os.utime(source, ns=(state.st_atime_ns, state.st_mtime_ns))  # same size, same date
    after = decoded(source, decode)
    assert decode.calls == 2
    assert after.tobytes() == source.read_bytes()
    assert before.tobytes() == b"0123456789" * 20  # still mapped, though its file is gone
    assert len(list(folder.iterdir())) == 1


def test_two_decoders_of_one_source_do_not_mix(source: Path, folder: Path) -> None:
    def other(path: Path) -> Array:
        return np.zeros(3)

    assert len(decoded(source, Decoder())) == 200
    assert len(decoded(source, other)) == 3


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: b"junk",
        lambda content: content[:-1],
        lambda content: content + b"\0",
        lambda content: content[:20],
        lambda content: b"PK\x03\x04" + content[4:],
        lambda content: content.replace(b"(200,)", b"(100,)"),
        lambda content: content.replace(b"(200,)", b"(200,("),
        lambda content: content.replace(b"(200,)", b"(2 0,)"),
        lambda content: content.replace(b"(200,)", b"('2',)"),
        lambda content: content.replace(b"(200,)", b"(9e9,)"),
        lambda content: content.replace(b"|u1", b"|O8"),
    ],
)
def test_a_damaged_cache_file_is_rebuilt(source: Path, folder: Path, damage) -> None:  # type: ignore[no-untyped-def]
    decode = Decoder()
    decoded(source, decode)
    (kept,) = folder.iterdir()
    kept.write_bytes(damage(kept.read_bytes()))
    for _ in range(2):
        assert decoded(source, decode).tobytes() == source.read_bytes()
    assert decode.calls == 2


def test_a_cache_that_cannot_be_made_costs_only_time(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("PACELINE_CACHE", str(tmp_path / "file" / "below"))
    array = decoded(source, Decoder())
    assert array.tobytes() == source.read_bytes()
    assert not array.flags.writeable


def test_a_full_disk_costs_only_time_and_leaves_nothing(
    source: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert decoded(source, Decoder()).tobytes() == source.read_bytes()
    assert list(folder.iterdir()) == []


def test_the_decoder_tells_what_is_wrong_with_a_source(tmp_path: Path, folder: Path) -> None:
    def decode(source: Path) -> Array:
        raise DataError(f"no {source.name}")

    with pytest.raises(DataError, match="no nowhere"):
        decoded(tmp_path / "nowhere", decode)


FILL = """
import sys, time
from pathlib import Path
import numpy as np
from paceline.data.cache import decoded

def decode(source):
    time.sleep(0.1)
    return np.frombuffer(source.read_bytes(), np.uint8).copy()

for _ in range(5):
    array = decoded(Path(sys.argv[1]), decode)
    assert array.tobytes() == Path(sys.argv[1]).read_bytes()
print(type(array).__name__)
"""


def test_many_processes_may_fill_it_at_once(source: Path, folder: Path) -> None:
    source.write_bytes(os.urandom(2_000_000))
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", FILL, str(source)]
    fillers = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    said = [filler.communicate(timeout=60)[0] for filler in fillers]
    assert said == ["memmap\n"] * 4
    assert [path.suffix for path in folder.iterdir()] == [".npy"]
