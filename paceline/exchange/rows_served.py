"""Sparse tables over TCP: rows are fetched when a batch needs them, and go with the push.

    forward ──FETCH rows──► servers ──ROWS──► the table's place here ──► backward
    push ──ROWS, then PUSH of the first block──► each server applies both

Of S servers, server s has the rows whose number leaves the rest s when divided by S. A worker has a
place for the whole table; only the rows it has fetched are of any use, and take memory.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

import numpy as np
from torch import Tensor

from paceline.errors import PeerLost, WireError
from paceline.exchange.base import Among, Copied, Post
from paceline.exchange.rows import Push, Pushed, Rows
from paceline.exchange.served import Served
from paceline.exchange.servers import AGAIN, RETURNS_WITHIN, ByServer, Letter, reach, told
from paceline.exchange.tables import Table
from paceline.kernels import sparse
from paceline.kernels.arrays import Floats, Ids
from paceline.server.rows import RowGradient, nothing
from paceline.server.rowwire import (
    AT_ONCE,
    FLOAT_BYTES,
    ID_BYTES,
    Packed,
    packed,
    rows_in,
    values_in,
)
from paceline.transport import slate
from paceline.transport.counts import Counts
from paceline.transport.frames import Frame, Kind
from paceline.transport.memory import own_stretch
from paceline.transport.sockets import Line
from paceline.types import Traffic

Answer = TypeVar("Answer")


class RowsServed(Rows):
    """Goes with `Served`, which sends what is pushed, and again if it has to."""

    def __init__(self, post: Post, dense: Served) -> None:
        self._post = post
        self._dense = dense
        self._lines: list[Line | None] = [None] * len(post.shards)
        self._counts: ByServer = defaultdict(Counts)  # lines of the dense exchange have their own

    @property
    def sent(self) -> int:  # type: ignore[override]
        return sum(counts.sent for counts in self._counts.values())

    @property
    def received(self) -> int:  # type: ignore[override]
        return sum(counts.received for counts in self._counts.values())

    def traffic(self) -> tuple[Traffic, ...]:
        return told(self._counts)

    def bind(self, tables: Sequence[Table]) -> None:
        self._tables = tables
        self._weights: list[Floats] = []
        for number, table in enumerate(tables):
            self._weights.append(self._place(table, fill=True))
            table.before_use(partial(self.fetch, number))
        if self._post.first:
            self._dense.first = self._first_values()

    def _place(self, table: Table, *, fill: bool) -> Floats:
        view = table.placed(own_stretch(table.size.held(0)), 0)
        table.bind(view, fill=fill)
        return view.weights

    def push(self, push: Push, found: Pushed) -> None:
        self._dense.along = partial(self._letters, found) if push.weight else None

    def _letters(self, found: Pushed, sequence: int) -> list[Letter]:
        """What goes to each server before its first block."""
        servers = len(self._lines)
        letters: list[Letter] = []
        for table, gradient in enumerate(found):
            rows, values = gradient or nothing(self._tables[table].columns)
            order = np.argsort(rows, kind="stable")
            rows, values = rows[order], values[order]
            for server in range(servers):
                mine = slice(None) if servers == 1 else rows % servers == server
                said = packed(rows[mine] // servers, values[mine])
                frame = Frame(Kind.ROWS, self._post.index, sequence, block=table)
                letters.append((server, about(frame, said), said.content))
        return letters

    def fetch(self, table: int, rows: Ids) -> None:
        """Have these rows here as they are now; each is named once, in any order."""
        servers, rows = len(self._lines), np.sort(rows)
        for begin in range(0, len(rows), AT_ONCE):
            some = rows[begin : begin + AT_ONCE]
            parts = [some if servers == 1 else some[some % servers == s] for s in range(servers)]
            found = self._patiently(partial(self._ask, table, parts))
            for values, those in zip(found, parts, strict=True):
                sparse.put(self._weights[table], those, values)

    def complete(self) -> None:
        """Have all rows here: those that are not zero are asked for, and nothing else is left."""
        servers = len(self._lines)
        for number, table in enumerate(self._tables):
            weights = self._weights[number] = self._place(table, fill=False)
            for server in range(servers):
                mine, first = weights[server::servers], 0
                while True:
                    frame = Frame(Kind.USED, self._post.index, block=number, begin=first)
                    found = self._patiently(partial(self._used, server, frame, len(mine)))
                    sparse.put(mine, *found[0])
                    if not (first := found[1]):
                        break

    def _used(self, server: int, frame: Frame, there: int) -> tuple[RowGradient, int]:
        self._say(server, frame, memoryview(b""))
        answer, content = self._hear(server, frame.block)
        said = Packed(answer.begin, answer.end, content)
        columns = self._tables[frame.block].columns
        return RowGradient(rows_in(said, there), values_in(said, columns)), answer.sequence

    def _ask(self, table: int, parts: Sequence[Ids]) -> list[Floats]:
        """Of each server its rows."""
        servers = len(self._lines)
        for server, rows in enumerate(parts):
            said = packed(rows // servers)
            frame = Frame(Kind.FETCH, self._post.index, block=table)
            self._say(server, about(frame, said), said.content)
        found = []
        for server, rows in enumerate(parts):
            _, content = self._hear(server, table)
            said = Packed(len(rows), 0, content)
            found.append(values_in(said, self._tables[table].columns))
        return found

    def _patiently(self, ask: Callable[[], Answer]) -> Answer:
        """What servers answer. One that is gone may come back, with all that it had."""
        deadline = time.monotonic() + RETURNS_WITHIN
        began = time.monotonic()
        while True:
            try:
                found = ask()
            except PeerLost:
                self._hang_up()
                if not self._post.returns or time.monotonic() > deadline:
                    raise
                time.sleep(AGAIN)
            else:
                self.fetched += time.monotonic() - began
                return found

    def _say(self, server: int, frame: Frame, content: memoryview) -> None:
        if (line := self._lines[server]) is None:
            line = self._lines[server] = reach(self._post, server, self._counts)
        line.send(frame, content)

    def _hear(self, server: int, table: int) -> tuple[Frame, memoryview]:
        line = self._lines[server]
        assert line is not None
        before = self._post.slate.waits(slate.server(server))
        frame = line.receive()
        most = self._tables[table].rows * (ID_BYTES + FLOAT_BYTES * self._tables[table].columns)
        if frame.kind != Kind.ROWS or frame.block != table or frame.length > most:
            raise WireError(f"{line.peer} sent a frame of kind {frame.kind} for table {table}.")
        content = memoryview(bytearray(frame.length))
        line.fill(content, frame.length)
        self._post.slate.back(before)
        return frame, content

    def _first_values(self) -> list[Letter]:
        """Of tables that do not begin at zero."""
        letters: list[Letter] = []
        servers = len(self._lines)
        for number, (table, weights) in enumerate(zip(self._tables, self._weights, strict=True)):
            for server in range(0 if table.zero else servers):
                mine = weights[server::servers]
                for begin in range(0, len(mine), AT_ONCE):
                    some = np.ascontiguousarray(mine[begin : begin + AT_ONCE]).reshape(-1)
                    payload = some.view(np.uint8).data
                    frame = Frame(
                        Kind.FILL, self._post.index, block=number, length=len(payload), begin=begin
                    )
                    letters.append((server, frame, payload))
        return letters

    def _hang_up(self) -> None:
        for server, line in enumerate(self._lines):
            if line is not None:
                line.close()
                self._lines[server] = None

    def keep(self, among: Among, copied: Copied) -> dict[str, Tensor]:
        """Servers keep the tables."""
        return {}

    def restore(self, kept: dict[str, Tensor]) -> None:
        pass


def about(frame: Frame, said: Packed) -> Frame:
    """The header of a frame with these rows."""
    return frame._replace(length=len(said.content), begin=said.rows, end=said.ids)
