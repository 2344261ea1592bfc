"""What a server holds, in memory that may outlive it: its successor goes on from there.

Parameters and the rule's state have two places, for even and for odd versions. An update is
written beside the version that stands, with a note of whose pushes are in it and how the next round
is shared out; then one word makes it the one that stands. So whoever looks after a server has died,
at whatever line, finds a whole version, and every push that was answered is in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from torch import Tensor

from paceline.server.gate import Shares
from paceline.server.shards import Sizes
from paceline.transport import memory
from paceline.transport.board import Board


class Kept(NamedTuple):
    """`params` is [2, size] and `state` [2, states, size].

    `words` has one a block, which is the version that stands plus one; then three a place, block
    and worker: the last push of the worker's that is in it, and its share of the next round.
    """

    params: Tensor
    state: Tensor
    words: memoryview

    @classmethod
    def within(cls, floats: int, words: int, sizes: Sizes) -> Kept:
        """In two segments that somebody else holds open; they were zeroed when they were new."""
        all_of_it = memory.floats(floats, (2, 1 + sizes.states, sizes.floats))
        board = Board(words, sizes.words, 0.0)
        return cls(all_of_it[:, 0], all_of_it[:, 1:], board.words)


class Marks:
    """A block's words: what stands, whose pushes are in it, and who has which share next."""

    def __init__(
        self, words: memoryview, block: int, blocks: int, workers: int, room: int = 0
    ) -> None:
        """There are words for `room` workers; only those that are there are written."""
        room = max(room, workers)
        self._words = words
        self._stands = block
        self._workers = workers
        rows = [blocks + (place * blocks + block) * 3 * room for place in range(2)]
        self._all = [range(row, row + 3 * room, 3) for row in rows]
        self._of = [row[:workers] for row in self._all]

    def seat(self) -> None:
        """There is one more worker."""
        self._workers += 1
        self._of = [row[: self._workers] for row in self._all]

    @property
    def version(self) -> int | None:
        """The one that stands, or None while there are no parameters."""
        return self._words[self._stands] - 1 if self._words[self._stands] else None

    def pushes(self) -> dict[int, int]:
        """Of each worker that has pushed, the last that is in the version that stands."""
        return {w: self._words[at] for w, at in self._standing() if self._words[at]}

    def shares(self) -> Shares:
        """Of each worker that has one, its part of the batch of the round that is open."""
        found = {w: (self._words[at + 1], self._words[at + 2]) for w, at in self._standing()}
        return {w: (begin, end) for w, (begin, end) in found.items() if begin < end}

    def _standing(self) -> Iterator[tuple[int, int]]:
        return enumerate(self._all[(self.version or 0) % 2])

    def stand(
        self, version: int, pushes: dict[int, int], share: Callable[[int], tuple[int, int]]
    ) -> None:
        """From now on this version stands, with these workers' last pushes in it."""
        for worker, at in enumerate(self._of[version % 2]):
            self._words[at] = pushes.get(worker, 0)
            self._words[at + 1], self._words[at + 2] = share(worker)
        self._words[self._stands] = version + 1
