"""One role's part of a checkpoint: a few values and arrays in one file.

    magic line | one JSON line: values, and name, type and shape of each array | array | array | …

No pickle: nothing in such a file can do anything but be numbers. The JSON line and every array are
filled up to whole 64 bytes, so arrays are used where they were read. The file is hashed while it
is written and while it is read, against damage, not against forgers: that takes a tenth of the time
that sha256 would, on cores that have training to do.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import xxhash

from paceline.errors import StoreError
from paceline.files import replacing
from paceline.store.faults import cannot_read, cannot_write

MAGIC = b"paceline part 1\n"
ALIGNED = 64
CHUNK = 1 << 20  # bytes hashed and written at a time
KINDS = ("float32", "float64", "int64", "uint8", "uint32")

Arrays: TypeAlias = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seal:
    """By what a part is known again."""

    bytes: int
    digest: str


def write_part(path: Path, values: Mapping[str, Any], arrays: Arrays) -> Seal:
    """Write it whole, or raise StoreError and leave nothing. Values are what JSON can say."""
    digest, count = xxhash.xxh3_128(), 0
    try:
        with replacing(path) as file:
            for piece in _pieces(values, arrays):
                digest.update(piece)
                file.write(piece)
                count += len(piece)
    except OSError as wrong:
        raise cannot_write(path, wrong) from wrong
    return Seal(bytes=count, digest=digest.hexdigest())


def check_part(path: Path, seal: Seal) -> None:
    """StoreError if the file is not the one that was sealed."""
    _read(path, seal)


def read_part(path: Path, seal: Seal) -> tuple[dict[str, Any], Arrays]:
    """What was written, or StoreError if the file is not the one that was sealed."""
    return _parse(path, _read(path, seal))


def _read(path: Path, seal: Seal) -> npt.NDArray[np.uint8]:
    try:
        if path.stat().st_size != seal.bytes:
            raise StoreError(f"'{path}' is damaged: it does not have the length it was given.")
        content = np.fromfile(path, dtype=np.uint8)
    except OSError as wrong:
        raise cannot_read(path, wrong) from wrong
    if xxhash.xxh3_128_hexdigest(content.data) != seal.digest:
        raise StoreError(f"'{path}' is damaged: its content is not what was written.")
    return content


def _pieces(values: Mapping[str, Any], arrays: Arrays) -> Iterator[bytes | memoryview]:
    for name, array in arrays.items():
        if array.dtype.name not in KINDS:
            raise ValueError(f"'{name}' is of {array.dtype}, not of {', '.join(KINDS)}")
    about = {
        "values": dict(values),
        "arrays": [[name, array.dtype.name, array.shape] for name, array in arrays.items()],
    }
    head = MAGIC + json.dumps(about).encode()
    yield head + b" " * (-(len(head) + 1) % ALIGNED) + b"\n"
    for array in arrays.values():
        content = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
        for begin in range(0, len(content), CHUNK):
            yield content[begin : begin + CHUNK]
        yield bytes(-len(content) % ALIGNED)


def _parse(path: Path, content: npt.NDArray[np.uint8]) -> tuple[dict[str, Any], Arrays]:
    magic = content[: len(MAGIC)].tobytes()
    if magic != MAGIC:
        raise StoreError(f"'{path}' is no part of a checkpoint that this version can read.")
    ends = np.flatnonzero(content[len(MAGIC) :] == ord("\n"))
    try:
        at = len(MAGIC) + int(ends[0]) + 1
        about = json.loads(content[len(MAGIC) : at].tobytes())
        arrays: Arrays = {}
        for name, kind, shape in about["arrays"]:
            dtype = np.dtype(KINDS[KINDS.index(kind)])
            size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
            arrays[name] = content[at : at + size].view(dtype).reshape(shape)
            at += size + -size % ALIGNED
        return about["values"], arrays
    except (IndexError, KeyError, TypeError, ValueError):
        raise StoreError(f"'{path}' is damaged: it does not say what is in it.") from None
