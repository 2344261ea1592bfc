"""Sparse tables in shared memory, with the promises of `ps-async`, `ssp` and `ps-sync`.

Rows are read where they lie. They are changed by the owner of their stripe alone, who has noted
them before (`server/undo.py`). `RowsAtOnce`: whoever has a gradient owns one stripe after another
and applies its own. `RowsInRounds`: everybody leaves its rows, stripe by stripe; once the round is
closed, each stripe's server applies the mean of all, and whoever waits for one that is gone does it
in its place.

A reader may see some rows of a push and not others yet, but never a part of a number.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from paceline.exchange.base import Among, Closed, Copied, Post
from paceline.exchange.putting_back import COUNTING
from paceline.exchange.rows import Push, Pushed, Rows, as_arrays, as_tensors, begins
from paceline.exchange.stripes import at_once_words, in_rounds_words
from paceline.exchange.tables import Table
from paceline.kernels import sparse
from paceline.kernels.arrays import Floats, Ids
from paceline.server.rowkeep import kept_rows, put_rows
from paceline.server.rowrules import RowRule
from paceline.server.rows import RowGradient, merged, nothing
from paceline.server.striping import ID, STRIPES, undo_words
from paceline.server.undo import Places, Undo
from paceline.transport import slate
from paceline.transport.board import Board
from paceline.types import Traffic


class Sorted(NamedTuple):
    """A push in order of stripe."""

    ends: Ids
    rows: Ids
    values: Floats

    def of(self, stripe: int) -> RowGradient:
        part = slice(self.ends[stripe], self.ends[stripe + 1])
        return RowGradient(self.rows[part], self.values[part])


class RowsShared(Rows):
    """What both have in common. The board has: what the strategy needs, then what `Undo` does."""

    def __init__(self, post: Post, words: int) -> None:
        assert post.table_board is not None
        self._post = post
        self._first = words
        self._rule = RowRule(post.rule, post.hyper)
        self._states = self._rule.states
        tables = len(post.tables)
        self._back = words + STRIPES * undo_words(
            tables
        )  # counts those who have put their part back
        self._board = Board(post.table_board, self._back + 1, post.spin, post.slate)

    def bind(self, tables: Sequence[Table]) -> None:
        post = self._post
        self._tables = tables
        self._places: list[Places] = []
        for table, memory, journal in zip(tables, post.tables, post.table_journals, strict=True):
            view = table.placed(memory, self._states)
            table.bind(view, fill=begins(post))
            self._places.append(Places.of(view, journal, STRIPES))
        self._views = [place.view for place in self._places]
        self._undo = Undo(self._board, self._first, self._places, STRIPES)

    def _sort(
        self, found: Pushed, into: Sequence[tuple[Ids, Floats]] | None = None
    ) -> list[Sorted]:
        """Each table's rows in order of stripe, in new memory or there."""
        pushed = []
        for number, gradient in enumerate(found):
            rows, values = gradient or nothing(self._tables[number].columns)
            ends = np.zeros(STRIPES + 1, np.int64)
            ids, out = into[number] if into else (np.empty_like(rows), np.empty_like(values))
            sparse.striped(rows, values, STRIPES, ends, ids, out)
            pushed.append(Sorted(ends, ids, out))
            self.sent += rows.nbytes + values.nbytes
            self.received += values.nbytes  # so many weights were read
        return pushed

    def traffic(self) -> tuple[Traffic, ...]:
        """Popular rows are spread over all servers, and so is what is given and taken."""
        servers = [f"server-{number}" for number in range(len(self._post.shards))]
        each = self.sent // len(servers), self.received // len(servers)
        return tuple(Traffic(server, *each) for server in servers)

    def keep(self, among: Among, copied: Copied) -> dict[str, Tensor]:
        """Of its part of the stripes, each as it stands between two changes."""
        kept: dict[str, Tensor] = {}
        for stripe in among.mine(STRIPES):
            with self._board.owning(stripe):
                self._undo.mend(stripe)
                kept |= as_tensors(kept_rows(self._views, f"{stripe}.", stripe, STRIPES))
                kept[f"{stripe}.words"] = torch.tensor(self._words_of(stripe))
        return kept

    def restore(self, kept: dict[str, Tensor]) -> None:
        """What this worker has kept; nobody begins before all have put theirs back."""
        for stripe in range(STRIPES):
            if f"{stripe}.words" in kept:
                put_rows(self._views, f"{stripe}.", as_arrays(kept))
                self._set_words(stripe, kept[f"{stripe}.words"].tolist())
        with self._board.owning(COUNTING):
            self._board.post(self._back, self._board.words[self._back] + 1)
        self._board.wait(self._back, len(self._post.crew), "all rows of the checkpoint")

    def _words_of(self, stripe: int) -> list[int]:
        """What says which pushes the stripe has."""
        raise NotImplementedError

    def _set_words(self, stripe: int, values: list[int]) -> None:
        raise NotImplementedError

    def _change(
        self,
        stripe: int,
        word: int,
        value: int,
        found: Sequence[RowGradient],
        lr: float,
        version: int,
    ) -> None:
        """Apply these to a stripe that is owned and mended; `word` says so from then on."""
        self._undo.begin(stripe, [gradient.rows for gradient in found], word)
        for place, (rows, values) in zip(self._places, found, strict=True):
            self._rule(*place.view[:2], rows, values, lr, version)
        self._board.post(word, value)
        self._undo.done(stripe)


class RowsAtOnce(RowsShared):
    """The board has, a worker and stripe, how many of its pushes the stripe has."""

    def __init__(self, post: Post) -> None:
        super().__init__(post, at_once_words(post.room))

    def push(self, push: Push, found: Pushed) -> None:
        began = time.monotonic()
        pushed, words = self._sort(found), self._board.words
        own = self._post.index * STRIPES
        waited = 0.0
        # Each begins at another stripe, so that two pushes at once rarely want the same one.
        for turn in range(STRIPES):
            stripe = (turn + self._post.index) % STRIPES
            asked = time.monotonic()
            with self._board.owning(stripe):
                waited += time.monotonic() - asked
                self._undo.mend(stripe)
                if words[own + stripe] < push.number:  # else a former life has pushed it
                    parts = [one.of(stripe) for one in pushed]
                    self._change(stripe, own + stripe, push.number, parts, push.lr, push.version)
        self.waited += waited
        self.updated += time.monotonic() - began - waited

    def pushed(self) -> int:
        own = self._post.index * STRIPES
        return min(self._board.words[own + stripe] for stripe in range(STRIPES))

    def _words_of(self, stripe: int) -> list[int]:
        return [self._board.words[w * STRIPES + stripe] for w in range(self._post.room)]

    def _set_words(self, stripe: int, values: list[int]) -> None:
        for worker, value in enumerate(values[: self._post.room]):
            self._board.words[worker * STRIPES + stripe] = value


class RowsInRounds(RowsShared):
    """The board has, a stripe, the last round it has; then of each worker, a table and stripe, how
    many rows it has left for the round."""

    def __init__(self, post: Post) -> None:
        super().__init__(post, in_rounds_words(post.room, len(post.tables)))

    def bind(self, tables: Sequence[Table]) -> None:
        super().bind(tables)
        post = self._post
        self._left = [
            [left_views(table, post.table_pushes[number][worker]) for worker in range(post.room)]
            for number, table in enumerate(tables)
        ]

    def start(self, closed: Closed | None) -> None:
        """Whoever comes back may find rounds that are closed, and not applied yet."""
        self.settle(closed)

    def push(self, push: Push, found: Pushed) -> None:
        mine = self._post.index
        pushed = self._sort(found, [left[mine] for left in self._left])
        for table, one in enumerate(pushed):
            first = self._counts(mine, table)
            for stripe, count in enumerate(np.diff(one.ends).tolist()):
                self._board.words[first + stripe] = count

    def _counts(self, worker: int, table: int) -> int:
        return STRIPES * (1 + worker * len(self._tables) + table)

    def settle(self, closed: Closed | None) -> None:
        if closed is None:
            return
        began = time.monotonic()
        for stripe in range(STRIPES):
            if self._post.host(stripe) == self._post.index:
                self._apply(stripe, closed)
        applied = time.monotonic()
        for stripe in range(STRIPES):
            what = f"the server of stripe {stripe} in round {closed.round}"
            gone, peer = self._gone(stripe, closed), slate.worker(self._post.host(stripe))
            while not self._board.wait(stripe, closed.round, what, gone, peer):
                self._apply(stripe, closed)
        self.updated += applied - began
        self.waited += time.monotonic() - applied

    def _words_of(self, stripe: int) -> list[int]:
        return [self._board.words[stripe]]

    def _set_words(self, stripe: int, values: list[int]) -> None:
        self._board.words[stripe] = values[0]

    def _gone(self, stripe: int, closed: Closed) -> Callable[[], bool]:
        return lambda: not closed.there(self._post.host(stripe))

    def _apply(self, stripe: int, closed: Closed) -> None:
        with self._board.owning(stripe):
            self._undo.mend(stripe)
            if self._board.words[stripe] < closed.round:
                now, mean = closed.round, self._mean(stripe, closed)
                self._change(stripe, stripe, now, mean, closed.rate, now)

    def _mean(self, stripe: int, closed: Closed) -> list[RowGradient]:
        """A table each."""
        found = []
        for table, left in enumerate(self._left):
            pushes = [
                (self._part(left[worker], worker, table, stripe), weight)
                for worker, weight in closed.pushes
                if weight > 0
            ]
            found.append(merged(pushes) if pushes else nothing(self._tables[table].columns))
        return found

    def _part(self, left: tuple[Ids, Floats], worker: int, table: int, stripe: int) -> RowGradient:
        first, words = self._counts(worker, table), self._board.words
        begin = sum(words[first + before] for before in range(stripe))
        part = slice(begin, begin + words[first + stripe])
        return RowGradient(left[0][part], left[1][part])


def left_views(table: Table, memory: Tensor) -> tuple[Ids, Floats]:
    """Room for a push of all its rows: numbers and values."""
    split = ID * table.rows
    ids = memory[:split].numpy()
    values = memory[split : split + table.rows * table.columns].numpy()
    return ids.view(np.int64), values.reshape(table.rows, table.columns)
