"""One row a step, in a file a worker appends to and anybody may read meanwhile.

    magic line | one JSON line naming the columns | row | row | row | …

A row is 80 bytes of little-endian numbers, so numpy reads a whole run in one call, and the fine
phases of a step sum to its duration. Whoever reads gets the five phases beside them. Files of the
first version have these alone: there the fine ones are not known, and NaN.
"""

from __future__ import annotations

import json
import os
import struct
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from paceline.errors import StoreError
from paceline.store.append import AppendFile
from paceline.store.faults import cannot_read
from paceline.types import FINE, PARTS, PHASES

Steps: TypeAlias = npt.NDArray[np.void]

Pack: TypeAlias = Callable[..., bytes]  # a row of its columns' values
# Makes rows of what was noted, by packing each. If that fails it is called again, so it counts
# nothing before it is through.
Rows: TypeAlias = Callable[[Sequence[tuple[Any, ...]], Pack], Iterable[bytes]]

_KINDS = {"<f8": "d", "<f4": "f", "<u4": "I", "<u8": "Q"}


def _columns(phases: tuple[str, ...]) -> list[tuple[str, str]]:
    return [
        ("time", "<f8"),  # end of the step
        ("step", "<u4"),
        ("epoch", "<u4"),
        ("samples", "<u4"),
        ("loss", "<f4"),
        *((phase, "<f4") for phase in phases),
        ("arrival", "<f8"),  # when the worker reached the exchange
        ("version", "<u8"),
        ("staleness", "<u4"),
    ]


class Form:
    """How rows lie in a file of one version."""

    def __init__(self, version: int, phases: tuple[str, ...]) -> None:
        columns = _columns(phases)
        self.magic = f"paceline steps {version}\n".encode()
        self.row = np.dtype(columns)
        self.header = self.magic + json.dumps({"columns": self.row.descr}).encode() + b"\n"
        # Packing is several times cheaper than assigning to a structured row.
        self.pack = struct.Struct("<" + "".join(_KINDS[kind] for _, kind in columns)).pack


FIRST = Form(1, PHASES)
NOW = Form(2, FINE)
HEADER, ROW, COLUMNS = NOW.header, NOW.row.itemsize, len(NOW.row.descr)
STEP = np.dtype(_columns((*FINE, *PARTS)))  # what readers get
BUFFER_ROWS = 4096
CHUNK = 1 << 14


class StepWriter:
    """Buffers rows and appends them to the file: at a full buffer, at `flush`, at `close`.

    Takes up after an earlier writer of the same file, so a restarted worker goes on where it was,
    in the form that the file has. With `after`, it goes on after that step: what was recorded of
    later ones is dropped.
    """

    def __init__(self, path: Path, after: int | None = None) -> None:
        self._file = AppendFile(path)
        try:
            self._form = _begin(self._file)
            if after is not None:
                _cut(self._file, self._form, after)
        except BaseException:
            self._file.close()
            raise
        self._noted: list[tuple[Any, ...]] = []
        self._rows: Rows = _as_noted
        self._made = bytearray()  # rows that are not handed on yet

    def append(self, *values: float) -> None:
        """Record one step: a value for each column of the file, in that order."""
        if len(values) != COLUMNS:
            raise ValueError(f"a step has {COLUMNS} values, not {len(values)}")
        if len(self._noted) >= BUFFER_ROWS:
            self.flush()
        self._noted.append(values)

    def notes(self, rows: Rows) -> list[tuple[Any, ...]]:
        """Where whoever flushes often notes steps as it likes; `rows` makes rows of them when they
        are settled or flushed."""
        self._rows = rows
        return self._noted

    def settle(self) -> None:
        """Make rows of what was noted.

        Some at once cost far less than one in each step, when the step has just driven everything
        else out of the cache; and notes of many steps drive out what the steps need.
        """
        if self._noted:
            pack = self._form.pack if self._form is NOW else _packed_coarse
            try:
                self._made += b"".join(self._rows(self._noted, pack))
            except OverflowError:  # a diverged loss in double precision
                self._made += b"".join(self._rows(self._noted, partial(_packed_any, self._form)))
            self._noted.clear()

    def flush(self) -> None:
        """Hand the buffered rows to the kernel. After a StoreError they are still buffered."""
        self.settle()
        if self._made:
            self._file.append(bytes(self._made))
            self._made.clear()

    def close(self) -> None:
        try:
            self.flush()
        finally:
            self._file.close()


def read_steps(path: Path) -> Steps:
    """All whole rows; none if the file is missing or only begun. Foreign files raise StoreError."""
    return next(step_chunks(path, -1), no_steps())


def no_steps() -> Steps:
    return np.empty(0, dtype=STEP)


def step_chunks(path: Path, rows: int = CHUNK, skip: int = 0) -> Iterator[Steps]:
    """The same a part at a time, after the first few: millions need not be in memory at once."""
    try:
        with path.open("rb") as file:
            form = _form(path, head := file.read(len(HEADER)))
            file.seek(min(len(head), len(form.header)) + skip * form.row.itemsize)
            while len(part := np.fromfile(file, dtype=form.row, count=rows)):
                yield _widened(part)
    except FileNotFoundError:
        return
    except OSError as wrong:
        raise cannot_read(path, wrong) from wrong


def last_steps(path: Path, count: int) -> Steps:
    """The last whole rows, at most `count`: as cheap for a long file as for a short one."""
    try:
        with path.open("rb") as file:
            form = _form(path, file.read(len(HEADER)))
            begin, size = len(form.header), form.row.itemsize
            rows = max(0, (file.seek(0, os.SEEK_END) - begin) // size)
            file.seek(begin + max(0, rows - count) * size)
            return _widened(np.fromfile(file, dtype=form.row, count=min(rows, count)))
    except FileNotFoundError:
        return np.empty(0, dtype=STEP)
    except OSError as wrong:
        raise cannot_read(path, wrong) from wrong


def _widened(rows: npt.NDArray[np.void]) -> Steps:
    """With every column of STEP: phases are made from finer ones, or the finer are not known."""
    steps = np.empty(len(rows), dtype=STEP)
    for name in STEP.names or ():
        if name in (rows.dtype.names or ()):
            steps[name] = rows[name]
        elif name in PARTS:
            with np.errstate(invalid="ignore"):  # inf - inf, in a damaged file
                steps[name] = sum(rows[part] for part in PARTS[name])
        else:
            steps[name] = np.nan
    return steps


def _coarse(values: tuple[float, ...]) -> tuple[float, ...]:
    """A row of the first version's."""
    row = dict(zip(NOW.row.names or (), values, strict=True))
    row |= {phase: sum(row[part] for part in parts) for phase, parts in PARTS.items()}
    return tuple(row[name] for name in FIRST.row.names or ())


def _packed_coarse(*values: float) -> bytes:
    return FIRST.pack(*_coarse(values))


def _packed_any(form: Form, *values: float) -> bytes:
    """Infinity where a value is too large for its column."""
    with np.errstate(over="ignore"):
        return np.array([values if form is NOW else _coarse(values)], dtype=form.row).tobytes()


def _as_noted(noted: Iterable[tuple[float, ...]], pack: Pack) -> list[bytes]:
    return [pack(*values) for values in noted]


def _begin(file: AppendFile) -> Form:
    """Write the header, or mend what a killed writer left."""
    form = _form(file.path, head := file.read(0, len(HEADER)))
    if head.startswith(form.header):
        file.cut(file.size - (file.size - len(form.header)) % form.row.itemsize)
    else:
        file.cut(0)
        file.append(NOW.header)
    return form


def _cut(file: AppendFile, form: Form, after: int) -> None:
    """Drop the rows of later steps. Rows are in the order of their steps."""
    begin, size = len(form.header), form.row.itemsize
    rows = (file.size - begin) // size

    def step(row: int) -> int:
        content = file.read(begin + row * size, size)
        return int(np.frombuffer(content, dtype=form.row)["step"][0])

    file.cut(begin + bisect_right(range(rows), after, key=step) * size)


def _form(path: Path, head: bytes) -> Form:
    """Of a file that begins so, whole or torn at birth."""
    if head.startswith(FIRST.header):
        return FIRST
    if NOW.header.startswith(head) or FIRST.header.startswith(head):
        return NOW
    if head.startswith((NOW.magic, FIRST.magic)):
        raise StoreError(f"'{path}' has other columns: another version of Paceline wrote it.")
    raise StoreError(f"'{path}' is not a steps file of Paceline.")
