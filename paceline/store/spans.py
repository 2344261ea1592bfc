"""What a role was at besides steps, in a file it appends to and anybody may read meanwhile.

    magic line | one JSON line naming the columns | row | row | row | …

A row is when it began, in seconds since the start of the run, and how many seconds were spent on
each of a few things since. A worker writes one for each pause between two steps; a server writes
one for every few milliseconds, and its rows leave no time out.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ParamSpec, TypeAlias

import numpy as np
import numpy.typing as npt

from paceline.errors import StoreError
from paceline.measure.clock import Clock
from paceline.store.append import AppendFile
from paceline.store.faults import cannot_read

Spans: TypeAlias = npt.NDArray[np.void]

P = ParamSpec("P")

MAGIC = b"paceline spans 1\n"
EVERY = 1.0  # seconds between writes
MAX_HEADER = 4096


def spans_path(folder: Path, role: str) -> Path:
    """In a run's folder."""
    return folder / "steps" / f"{role}.spans"


class SpanWriter:
    """Writes rows down every second; takes up after an earlier writer of the same file."""

    def __init__(self, path: Path, names: tuple[str, ...], clock: Clock) -> None:
        self._names = names
        self._t0 = clock.t0
        self._row = _row(names)
        self._rows: list[tuple[float, ...]] = []
        self._flushed = 0.0
        self._file = AppendFile(path)
        header = _header(names)
        try:
            if not self._file.read(0, len(header)).startswith(header):
                self._file.cut(0)  # torn at birth, or of another version: nobody can read both
                self._file.append(header)
            self._file.cut(self._file.size - (self._file.size - len(header)) % self._row.itemsize)
        except BaseException:
            self._file.close()
            raise

    @classmethod
    def of(cls, assignment: dict[str, Any], names: tuple[str, ...], clock: Clock) -> SpanWriter:
        """Of the role that has this assignment."""
        return cls(spans_path(Path(assignment["folder"]), assignment["role"]), names, clock)

    @contextmanager
    def during(self, name: str) -> Iterator[None]:
        """Whatever is done in here is this; it is written at once, since that is seldom."""
        began = time.monotonic()
        try:
            yield
        finally:
            spent = time.monotonic() - began
            self.append(began, [spent if name == each else 0.0 for each in self._names])
            self.flush()

    def timed(self, name: str, act: Callable[P, None]) -> Callable[P, None]:
        """The same that `act` does, during which it is this."""

        def timed(*args: P.args, **kwargs: P.kwargs) -> None:
            with self.during(name):
                act(*args, **kwargs)

        return timed

    def append(self, began: float, seconds: list[float]) -> None:
        """Seconds for each name, since `time.monotonic()` was `began`."""
        self._rows.append((began - self._t0, *seconds))
        if began - self._flushed >= EVERY:
            self._flushed = began
            self.flush()

    def flush(self) -> None:
        """Hand the rows to the kernel. After a StoreError they are still here."""
        if self._rows:
            self._file.append(np.array(self._rows, dtype=self._row).tobytes())
            self._rows.clear()

    def close(self) -> None:
        try:
            self.flush()
        finally:
            self._file.close()


def read_spans(path: Path) -> Spans | None:
    """All whole rows, with `begin` and a column for each thing; None if there is no such file."""
    try:
        with path.open("rb") as file:
            head = file.read(MAX_HEADER)
            if MAGIC.startswith(head[: len(MAGIC)]) and head.count(b"\n") < 2:
                return None  # torn at birth
            row, size = _read_header(path, head)
            file.seek(size)
            return np.fromfile(file, dtype=row)
    except FileNotFoundError:
        return None
    except OSError as wrong:
        raise cannot_read(path, wrong) from wrong


def _row(names: tuple[str, ...]) -> np.dtype[np.void]:
    return np.dtype([("begin", "<f8"), *((name, "<f4") for name in names)])


def _header(names: tuple[str, ...]) -> bytes:
    return MAGIC + json.dumps({"columns": _row(names).descr}).encode() + b"\n"


def _read_header(path: Path, head: bytes) -> tuple[np.dtype[np.void], int]:
    magic, _, rest = head.partition(b"\n")
    line, _, _ = rest.partition(b"\n")
    if magic + b"\n" != MAGIC:
        raise StoreError(f"'{path}' is not a spans file of Paceline.")
    try:
        columns = [(str(name), str(kind)) for name, kind in json.loads(line)["columns"]]
        return np.dtype(columns), len(magic) + len(line) + 2
    except (ValueError, KeyError, TypeError):
        raise StoreError(f"'{path}' is damaged: it does not tell its columns.") from None
