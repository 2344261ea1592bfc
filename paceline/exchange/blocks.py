"""Which blocks of the gradient are complete, as backward makes it parameter by parameter.

Arithmetic only, no I/O. Backward makes the last layers first, and a block lies across as many
parameters as it happens to: it can leave when the last of them is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from paceline.server.shards import Cut


class Block(NamedTuple):
    """A server's block, and the part of the flat buffer that it is."""

    server: int
    number: int
    at: slice


class Part(NamedTuple):
    """What a parameter gives to a block: `inside` of the parameter is `at` of the flat buffer."""

    block: int
    at: slice
    inside: slice


def all_blocks(cut: Cut) -> list[Block]:
    return [
        Block(server, number, slice(start, stop))
        for server, spans in enumerate(cut)
        for number, (start, stop) in enumerate(spans)
    ]


def parts_of(block: Block, others: Sequence[Block]) -> list[tuple[Block, slice]]:
    """What became of a block when it was cut anew: others, each with the part of it that it is."""
    return [
        (other, slice(other.at.start - block.at.start, other.at.stop - block.at.start))
        for other in others
        if block.at.start <= other.at.start and other.at.stop <= block.at.stop
    ]


class Progress:
    """Counts, for one backward at a time."""

    def __init__(self, spans: Sequence[slice], blocks: Sequence[Block]) -> None:
        self.parts: list[list[Part]] = [[] for _ in spans]
        self._needs = [0] * len(blocks)
        for parameter, span in enumerate(spans):
            for number, block in enumerate(blocks):
                start, stop = max(span.start, block.at.start), min(span.stop, block.at.stop)
                if start < stop:
                    inside = slice(start - span.start, stop - span.start)
                    self.parts[parameter].append(Part(number, slice(start, stop), inside))
                    self._needs[number] += 1
        self._left = list(self._needs)

    def begin(self) -> None:
        self._left = list(self._needs)

    def alone(self, block: int) -> bool:
        """Whether the block lies within one parameter."""
        return self._needs[block] == 1

    def made(self, block: int) -> bool:
        """One more parameter of this block is made: whether that was the last."""
        self._left[block] -= 1
        return self._left[block] == 0
