"""The part of fuzzing that is about rows of sparse tables: what to say, and what to make of it."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np
import torch

from paceline.server.desk import Desk
from paceline.server.elementwise import Hyper
from paceline.server.gate import Push
from paceline.server.rowrules import RowRule
from paceline.server.rowstore import RowStore, places_in
from paceline.server.rowwire import packed
from paceline.server.striping import Size
from paceline.transport.frames import Frame, Kind
from paceline.transport.memory import own_stretch
from tools.fuzz_standby import Wrong

TABLES = (Size(9, 2), Size(4, 1))
ABOUT_ROWS = [Kind.ROWS, Kind.FETCH, Kind.FILL, Kind.USED]


def a_store() -> RowStore:
    """A server's part of tables: all of them."""
    held = [own_stretch(size.held(0)) for size in TABLES]
    places = places_in(TABLES, 0, held, [torch.empty(0)] * len(TABLES))
    return RowStore(places, RowRule("sgd", Hyper()))


class Rows:
    """What a server should make of sparse tables, as plainly as can be."""

    def __init__(self) -> None:
        self.tables = [np.zeros(size, np.float32) for size in TABLES]
        self.left: dict[int, tuple[int, list[dict[int, Any]]]] = {}
        self.asking: dict[int, Any] = {}  # who asks, by which connection

    def fits(self, f: Frame) -> bool:
        if f.block >= len(TABLES):
            return False
        rows, columns = TABLES[f.block]
        return f.length <= rows * (5 + 4 * columns)

    def act(self, f: Frame, payload: bytes, known: bool) -> bool:
        size = TABLES[f.block]
        if f.kind == Kind.FETCH:
            return f.end == f.length and rows_said(f, payload, size.rows) is not None
        if f.kind == Kind.FILL and not known:
            count, rest = divmod(f.length, 4 * size.columns)
            if rest or f.begin + count > size.rows:
                return False
            values = np.frombuffer(payload, np.float32).reshape(count, size.columns)
            self.tables[f.block][f.begin : f.begin + count] = values
        if f.kind == Kind.ROWS and not known:
            return self._leave(f, payload)
        return True

    def _leave(self, f: Frame, payload: bytes) -> bool:
        size = TABLES[f.block]
        rows = rows_said(f, payload, size.rows)
        if rows is None or f.length != f.end + 4 * size.columns * len(rows):
            return False
        values = np.frombuffer(payload[f.end :], np.float32).reshape(len(rows), size.columns)
        sequence, found = self.left.get(f.sender, (-1, []))
        found = found if f.block and sequence == f.sequence else []
        if len(found) != f.block:
            return False
        self.left[f.sender] = f.sequence, [*found, dict(zip(rows, values, strict=True))]
        return True

    def apply(self, pushes: Sequence[Push], rate: float) -> None:
        """The rate is the first's of the round, which may have no samples."""
        total = sum(push.weight for push in pushes)
        for number, table in enumerate(self.tables):
            gradient: dict[int, Any] = {}
            for push in pushes:
                for row, values in self.left[push.worker][1][number].items():
                    share = np.float32(push.weight / total) if len(pushes) > 1 else np.float32(1)
                    gradient[row] = gradient.get(row, np.float32(0)) + share * values
            for row, values in gradient.items():
                whole = values + np.float32(0) * table[row]
                table[row] = table[row] - np.float32(rate) * whole

    def compare(self, desk: Desk) -> None:
        """Nothing but what was taken here has changed anything there."""
        store = desk.windows[0].tables
        assert store is not None
        for number, due in enumerate(self.tables):
            view = store.view(number)
            if not np.array_equal(view.weights, due, equal_nan=True):
                raise Wrong(f"rows are {view.weights.tolist()}, not {due.tolist()}")


def rows_said(f: Frame, payload: bytes, there: int) -> list[int] | None:
    """Numbers of rows as gaps, seven bits a byte; None if that is not what the bytes are."""
    if f.begin > there or not f.begin <= f.end <= min(len(payload), 5 * f.begin):
        return None
    found: list[int] = []
    data = list(payload[: f.end])
    for _ in range(f.begin):
        gap = 0
        for shift in (0, 7, 14, 21, 28):
            if not data:
                return None
            byte = data.pop(0)
            gap |= (byte & 127) << shift
            if byte < 128:
                break
        else:
            return None
        found.append((found[-1] if found else -1) + gap + 1)
    return None if data or (found and found[-1] >= there) else found


def rows_frames(rng: Random, kind: Kind, sender: int, name: int) -> list[tuple[Frame, bytes]]:
    """Good frames about rows, one a table."""
    frames = []
    for table, (there, columns) in enumerate(TABLES):
        rows = np.array(sorted(rng.sample(range(there), rng.randrange(there + 1))), np.int64)
        values = np.array([[rng.gauss(0, 1)] * columns for _ in rows], np.float32)
        values = values.reshape(len(rows), columns)
        frame = Frame(kind, sender, block=table)
        said = packed(rows, values if kind == Kind.ROWS else None)
        if kind == Kind.FILL:
            first = rng.randrange(there)
            some = rng.randbytes(4 * columns * rng.randrange(there - first + 1))
            frames.append((frame._replace(begin=first, length=len(some)), some))
        elif kind == Kind.USED:
            frames.append((frame._replace(begin=rng.randrange(there + 1)), b""))
        else:
            sequence = name if kind == Kind.ROWS else 0
            frame = frame._replace(sequence=sequence, begin=said.rows, end=said.ids)
            frames.append((frame._replace(length=len(said.content)), bytes(said.content)))
    return frames
