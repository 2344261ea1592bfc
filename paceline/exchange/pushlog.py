"""What is left of a worker that dies in mid-push: which version stands, and who has pushed what.

    own the shard ─► settle ─► (journal a chunk ─► change it) … ─► commit ─► count ─► let go

A push that goes to a place of its own changes nothing that others read until it is committed, by
one word. Where the pusher's own place is the one that stands, chunks are changed in it one by one;
each is put into a journal first. Whoever owns the shard next puts a chunk that is half changed
back, and leaves a note how many were whole: that worker's next life takes the same step again for
the rest of them alone. So every chunk gets every gradient once.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from paceline.exchange.journal import Journal
from paceline.exchange.layout import SHARD_WORDS
from paceline.transport.board import Board

COMMIT, COUNTED, NEXT, BEGUN = range(SHARD_WORDS)
PLACE_BITS = 16  # of a commit say in whose place it is; above them is its version


class PushLog:
    """Everything here is called by the shard's owner. `journal` is [shards, 2, floats a chunk].

    On the board it has from `first` on: four words a shard; then how many pushes, and how many
    chunks of the next, a worker and shard.
    """

    def __init__(
        self, board: Board, first: int, shards: int, workers: int, journal: Tensor
    ) -> None:
        self._words = board.words
        self._shards = [first + SHARD_WORDS * s for s in range(shards)]
        rows = first + SHARD_WORDS * shards
        self._counts = [[rows + w * shards + s for s in range(shards)] for w in range(workers)]
        rows += workers * shards
        self._partial = [[rows + w * shards + s for s in range(shards)] for w in range(workers)]
        begun = [at + BEGUN for at in self._shards]
        self._journal = Journal(board.words, begun, journal[:, :, None])

    def standing(self, shard: int) -> tuple[int, int]:
        """The version that stands, and in whose place."""
        commit = self._words[self._shards[shard] + COMMIT]
        return commit >> PLACE_BITS, commit & (1 << PLACE_BITS) - 1

    def pushes(self, worker: int) -> int:
        """How many of the worker's pushes every shard has whole."""
        return min(self._words[word] for word in self._counts[worker])

    def has(self, worker: int, shard: int, push: int) -> bool:
        """Whether the shard has the worker's push of this number, counted from 1."""
        return self._words[self._counts[worker][shard]] >= push

    def partial(self, worker: int, shard: int) -> int:
        """How many chunks of the worker's next push are in already."""
        return self._words[self._partial[worker][shard]]

    def change(self, shard: int, version: int, chunk: int, values: Tensor) -> None:
        """A chunk of this version, which stands, is about to be changed where it lies."""
        if self._journal.begun(shard, version + 1) != chunk:  # else a part of it is changed
            self._journal.begin(shard, version + 1, chunk, [values])

    def commit(self, shard: int, worker: int, version: int) -> None:
        """The worker's push is whole, in its place: this version."""
        at, words, counts = self._shards[shard], self._words, self._counts[worker][shard]
        words[at + NEXT] = words[counts] + 1
        words[at + COMMIT] = version << PLACE_BITS | worker
        self._count(shard, version, worker)

    def keep(self, shard: int, workers: int) -> list[int]:
        """Of a shard that is settled, for a checkpoint: its version, and of each of so many workers
        how many pushes it has, and how many chunks of the next."""
        rows = (*self._counts[:workers], *self._partial[:workers])
        return [self.standing(shard)[0], *(self._words[row[shard]] for row in rows)]

    def restore(self, shard: int, worker: int, kept: list[int]) -> None:
        """Have the version that was kept stand in the worker's place, before anybody pushes."""
        at, words, (version, *own) = self._shards[shard], self._words, kept
        half = len(own) // 2
        for rows, values in ((self._counts, own[:half]), (self._partial, own[half:])):
            for row, value in zip(rows, values, strict=False):  # more may have been there once
                words[row[shard]] = value
        words[at + COUNTED] = version
        words[at + COMMIT] = version << PLACE_BITS | worker

    def settle(self, shard: int, restore: Callable[[int, int, int], Tensor]) -> tuple[int, int]:
        """Finish for a former owner what it died over; then, as `standing`, what stands.

        `restore(shard, worker, chunk)` puts back what belongs to a chunk, and says where the
        worker's own place has it.
        """
        at, words = self._shards[shard], self._words
        version, place = self.standing(shard)
        if words[at + COUNTED] != version:
            self._count(shard, version, place)
        chunk = self._journal.begun(shard, version + 1)
        if chunk is not None:
            self._journal.restore(shard, chunk, [restore(shard, place, chunk)])
            words[self._partial[place][shard]] = chunk
            self._journal.forget(shard)
        return version, place

    def _count(self, shard: int, version: int, place: int) -> None:
        """Count the push that stands, if there is one. Twice is as good as once."""
        at, words = self._shards[shard], self._words
        if version:
            words[self._counts[place][shard]] = words[at + NEXT]
            words[self._partial[place][shard]] = 0
        words[at + COUNTED] = version
