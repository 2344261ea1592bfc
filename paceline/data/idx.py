"""idx files, as MNIST is published: a magic number, the dimensions, the values; big-endian."""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from pathlib import Path

import numpy as np

from paceline.data.base import Array
from paceline.errors import DataError

# The magic number is two zero bytes, the type of the values, and how many dimensions there are.
TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
GZIP = b"\x1f\x8b"
REMEDY = "get the file again"


def read_idx(path: Path) -> Array:
    """The array in an idx file, gzipped or plain, whatever its name; not whole is a DataError."""
    content = _content(path)
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] not in TYPES or not content[3]:
        begins = content[:4].hex(" ") or "nothing"
        raise DataError(f"'{path}' is not an idx file (it begins with {begins}): {REMEDY}.")
    dtype, dimensions = np.dtype(TYPES[content[2]]), content[3]
    start = 4 + 4 * dimensions
    if len(content) < start:
        raise DataError(f"'{path}' ends within its header: {REMEDY}.")
    shape = struct.unpack(f">{dimensions}I", content[4:start])
    length = start + math.prod(shape) * dtype.itemsize
    if len(content) != length:
        raise DataError(
            f"'{path}' should hold {length:,} bytes for an array of {_times(shape)} "
            f"and holds {len(content):,}: {REMEDY}."
        )
    values = np.frombuffer(content, dtype, offset=start).reshape(shape)
    return values.astype(dtype.newbyteorder("="), copy=False)


def _content(path: Path) -> bytes:
    """The file's bytes, unpacked if they are gzipped: some browsers unpack and keep the name."""
    try:
        raw = path.read_bytes()
    except OSError as wrong:
        why = (wrong.strerror or str(wrong)).lower()
        raise DataError(f"cannot read '{path}': {why}.") from None
    if not raw.startswith(GZIP):
        return raw
    try:
        return gzip.decompress(raw)
    except EOFError:
        raise DataError(f"'{path}' is cut short: {REMEDY}.") from None
    except (OSError, zlib.error):
        raise DataError(f"'{path}' is a damaged gzip file: {REMEDY}.") from None


def _times(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))
