"""Which server holds which range of the flat parameters, and in which blocks it travels."""

from __future__ import annotations

from typing import NamedTuple

# 2 MiB: large enough that a frame's header and turn cost nothing, small enough to stay in cache.
BLOCK = 1 << 19


def cut(size: int, servers: int) -> list[tuple[int, int]]:
    """Ranges as even as whole floats allow, across tensor borders: (start, stop) a server."""
    return [(size * s // servers, size * (s + 1) // servers) for s in range(servers)]


def blocks(size: int, block: int = BLOCK) -> list[slice]:
    """A shard of `size` floats in blocks."""
    return [slice(a, min(a + block, size)) for a in range(0, size, block)]


class Sizes(NamedTuple):
    """How much of each kind of memory a server keeps, where it may be taken over."""

    floats: int  # parameters
    states: int  # numbers a rule has for each of them
    words: int

    @classmethod
    def of(cls, size: int, block: int, states: int, workers: int) -> Sizes:
        count = len(blocks(size, block))
        return cls(size, states, count * (1 + 2 * 3 * workers))
