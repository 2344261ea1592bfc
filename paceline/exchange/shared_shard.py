"""A shard of parameters that all workers read in place, and whoever serves it changes in place.

    own the shard ─► put back what was half changed ─► (journal a chunk ─► change it) … ─► applied

One worker serves a shard as long as it lives. If it dies in mid-round, whoever waits for the shard
goes on where it was: every chunk gets every round once, at whatever line somebody dies. What the
rule keeps is in shared memory too.

A layer-wise rule goes over the chunks twice, and may change its state in the first pass: those
are numbered before those of the second.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from paceline.exchange.journal import Journal
from paceline.exchange.layout import SyncWords
from paceline.server.table import Table
from paceline.transport.board import Board

Pushes = Sequence[tuple[int, float]]


class SharedShard:
    """Rounds count from 1. Without a journal, whoever dies in mid-round leaves a half update."""

    def __init__(
        self, number: int, board: Board, words: SyncWords, table: Table, journal: Journal | None
    ) -> None:
        self.table = table
        self._number = number
        self._board = board
        self._applied = words.applied[number]
        self._measured = words.measured[number]
        self._journal = journal
        self._chunks = [table.changing(chunk) for chunk in range(table.chunks)] if journal else []

    def measure(self, now: int, pushes: Pushes) -> None:
        """The first pass of this round, unless that is done."""
        with self._board.owning(self._number):
            if self._board.words[self._measured] < now:
                self.table.version = now - 1
                self.table.measure(pushes, 0, self._resume(now), self._before(now, 0))
                self._board.post(self._measured, now)

    def apply(self, now: int, pushes: Pushes, rate: float) -> None:
        """This round, or what is left of it, unless it is done."""
        with self._board.owning(self._number):
            if self._board.words[self._applied] < now:
                measured = self._board.words[self._measured] == now
                before = len(self._chunks) if measured else 0
                first = max(0, self._resume(now) - before)
                self.table.version = now - 1
                self.table.apply(pushes, rate, 0, first, self._before(now, before))
                self._board.post(self._applied, now)

    def _resume(self, now: int) -> int:
        """From which chunk to go on, by its number in this round; it is as before the round."""
        if self._journal is None:
            return 0
        begun = self._journal.begun(self._number, now)
        if begun is None:
            return 0
        measured = self._board.words[self._measured] == now
        if not measured or begun >= len(self._chunks):  # else the first pass is whole
            self._journal.restore(self._number, begun, self._chunks[begun % len(self._chunks)])
        return begun

    def _before(self, now: int, offset: int) -> partial[None] | None:
        return partial(self._begin, now, offset) if self._journal is not None else None

    def _begin(self, now: int, offset: int, chunk: int) -> None:
        assert self._journal is not None
        self._journal.begin(self._number, now, offset + chunk, self._chunks[chunk])
