"""Which server holds which range of the flat parameters, and in which blocks it travels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

# 2 MiB: large enough that a frame's header and turn cost nothing, small enough to stay in cache.
BLOCK = 1 << 19

Span = tuple[int, int]  # of the flat parameters: start and stop
Cut = Sequence[Sequence[Span]]  # by server, its blocks


def cut(size: int, servers: int) -> list[tuple[int, int]]:
    """Ranges as even as whole floats allow, across tensor borders: (start, stop) a server."""
    return [(size * s // servers, size * (s + 1) // servers) for s in range(servers)]


def blocks(size: int, block: int = BLOCK) -> list[slice]:
    """A shard of `size` floats in blocks."""
    return [slice(a, min(a + block, size)) for a in range(0, size, block)]


def in_blocks(shards: Sequence[Span], block: int = BLOCK) -> Cut:
    """By server, the blocks of its range; of an empty one it is the only block."""
    return [
        [(start + span.start, start + span.stop) for span in blocks(stop - start, block)]
        or [(start, stop)]
        for start, stop in shards
    ]


def recut(spans: Cut, servers: int, *, split: bool) -> Cut:
    """The same blocks, in order, for another number of servers.

    A part of a block is as far as all of it was, so it may be `split` where servers meet. Blocks
    are never put together: they may be at different versions.
    """
    flat = [span for some in spans for span in some]
    if not split:
        return [flat[start:stop] for start, stop in cut(len(flat), servers)]
    found: list[list[Span]] = []
    for start, stop in cut(flat[-1][1], servers):
        inside = [(max(a, start), min(b, stop)) for a, b in flat]
        found.append([(a, b) for a, b in inside if a < b])
    return found


class Sizes(NamedTuple):
    """How much of each kind of memory a server keeps, where it may be taken over."""

    floats: int  # parameters
    states: int  # numbers a rule has for each of them
    words: int

    @classmethod
    def of(cls, size: int, block: int, states: int, room: int) -> Sizes:
        return cls.cut(size, len(blocks(size, block)), states, room)

    @classmethod
    def cut(cls, size: int, count: int, states: int, room: int) -> Sizes:
        """In so many blocks."""
        return cls(size, states, count * (1 + 2 * 3 * room))
