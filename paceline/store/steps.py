"""One row a step, in a file a worker appends to and anybody may read meanwhile.

    magic line | one JSON line naming the columns | row | row | row | …

A row is 64 bytes of little-endian numbers, so numpy reads a whole run in one call, and the five
phases of a step sum to its duration.
"""

from __future__ import annotations

import json
import struct
from bisect import bisect_right
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from paceline.errors import StoreError
from paceline.store.append import AppendFile
from paceline.store.faults import cannot_read

STEP = np.dtype(
    [
        ("time", "<f8"),  # end of the step
        ("step", "<u4"),
        ("epoch", "<u4"),
        ("samples", "<u4"),
        ("loss", "<f4"),
        ("data", "<f4"),
        ("compute", "<f4"),
        ("exchange", "<f4"),
        ("wait", "<f4"),
        ("update", "<f4"),
        ("arrival", "<f8"),  # when the worker reached the exchange
        ("version", "<u8"),
        ("staleness", "<u4"),
    ]
)
Steps: TypeAlias = npt.NDArray[np.void]

MAGIC = b"paceline steps 1\n"
HEADER = MAGIC + json.dumps({"columns": STEP.descr}).encode() + b"\n"
ROW = STEP.itemsize
COLUMNS = len(STEP.descr)
BUFFER_ROWS = 4096

# The same layout as STEP; packing is several times cheaper than assigning to a structured row.
_pack = struct.Struct("<dIIIffffffdQI").pack


class StepWriter:
    """Buffers rows and appends them to the file: at a full buffer, at `flush`, at `close`.

    Takes up after an earlier writer of the same file, so a restarted worker goes on where it was.
    With `after`, it goes on after that step: what was recorded of later ones is dropped.
    """

    def __init__(self, path: Path, after: int | None = None) -> None:
        self._file = AppendFile(path)
        try:
            _begin(self._file)
            if after is not None:
                _cut(self._file, after)
        except BaseException:
            self._file.close()
            raise
        self._rows: list[tuple[float, ...]] = []

    def append(self, *values: float) -> None:
        """Record one step: a value for each column of STEP, in that order.

        Rows are packed when they are flushed: many at once cost far less than one in each step,
        when the step has just driven everything else out of the cache.
        """
        if len(values) != COLUMNS:
            raise ValueError(f"a step has {COLUMNS} values, not {len(values)}")
        if len(self._rows) >= BUFFER_ROWS:
            self.flush()
        self._rows.append(values)

    def flush(self) -> None:
        """Hand the buffered rows to the kernel. After a StoreError they are still buffered."""
        if self._rows:
            self._file.append(b"".join(map(_packed, self._rows)))
            self._rows.clear()

    def close(self) -> None:
        try:
            self.flush()
        finally:
            self._file.close()


def read_steps(path: Path) -> Steps:
    """All whole rows; none if the file is missing or only begun. Foreign files raise StoreError."""
    try:
        with path.open("rb") as file:
            head = file.read(len(HEADER))
            _check_head(path, head)
            return np.fromfile(file, dtype=STEP)
    except FileNotFoundError:
        return np.empty(0, dtype=STEP)
    except OSError as wrong:
        raise cannot_read(path, wrong) from wrong


def _packed(values: tuple[float, ...]) -> bytes:
    try:
        return _pack(*values)
    except OverflowError:  # a diverged loss in double precision
        return _overflowed(values)


def _overflowed(values: tuple[float, ...]) -> bytes:
    """The row with infinity where a value is too large for its column."""
    with np.errstate(over="ignore"):
        return np.array(values, dtype=STEP).tobytes()


def _begin(file: AppendFile) -> None:
    """Write the header, or mend what a killed writer left."""
    head = file.read(0, len(HEADER))
    _check_head(file.path, head)
    if head == HEADER:
        file.cut(file.size - (file.size - len(HEADER)) % ROW)
    else:
        file.cut(0)
        file.append(HEADER)


def _cut(file: AppendFile, after: int) -> None:
    """Drop the rows of later steps. Rows are in the order of their steps."""
    rows = (file.size - len(HEADER)) // ROW

    def step(row: int) -> int:
        content = file.read(len(HEADER) + row * ROW, ROW)
        return int(np.frombuffer(content, dtype=STEP)["step"][0])

    file.cut(len(HEADER) + bisect_right(range(rows), after, key=step) * ROW)


def _check_head(path: Path, head: bytes) -> None:
    if HEADER.startswith(head):  # whole, or torn at birth
        return
    if head.startswith(MAGIC):
        raise StoreError(f"'{path}' has other columns: another version of Paceline wrote it.")
    raise StoreError(f"'{path}' is not a steps file of Paceline.")
