"""Rows on the wire: their numbers, rising, as the gaps between them, and then their values.

A gap takes seven bits a byte: one or two bytes where a batch uses many rows of a table, and five
at most.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from paceline.errors import WireError
from paceline.kernels import sparse
from paceline.kernels.arrays import Floats, Ids

ID_BYTES = 5  # of a row's number, at most
FLOAT_BYTES = 4
AT_ONCE = 1 << 18  # rows in one frame, at most, where all are asked for or filled


class Packed(NamedTuple):
    """So many rows; of their bytes so many say which they are."""

    rows: int
    ids: int
    content: memoryview


def packed(rows: Ids, values: Floats | None = None) -> Packed:
    size = 0 if values is None else values.nbytes
    out = np.empty(len(rows) * ID_BYTES + size, np.uint8)
    ids = int(sparse.encode(rows, out))
    if values is not None:
        out[ids : ids + size] = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
    return Packed(len(rows), ids, out[: ids + size].data)


def rows_in(said: Packed, there: int) -> Ids:
    """Which they are, of a table with so many; whoever said it may be anybody."""
    fits = said.rows <= said.ids <= min(said.rows * ID_BYTES, len(said.content))
    if said.rows > there or not fits:
        raise WireError(f"{said.rows} rows in {said.ids} bytes, of {there} there are.")
    rows = np.empty(said.rows, np.int64)
    data = np.frombuffer(said.content[: said.ids], np.uint8)
    if not sparse.decode(data, there, rows):
        raise WireError("numbers of rows that are none of this table's.")
    return rows


def values_in(said: Packed, columns: int) -> Floats:
    """What they are, as a copy."""
    if len(said.content) != said.ids + said.rows * columns * FLOAT_BYTES:
        raise WireError(f"{said.rows} rows with {len(said.content)} bytes.")
    content = np.frombuffer(said.content[said.ids :], np.uint8).copy()
    return content.view(np.float32).reshape(said.rows, columns)
