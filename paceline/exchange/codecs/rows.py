"""Rows: the few floats of a block that share a scale. The last row may be short."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from paceline.server.rules import CHUNK

ROW = 1024


class Piece(NamedTuple):
    """Some rows of a block: where their floats lie, which rows, and how wide they are."""

    at: slice
    rows: slice
    shape: tuple[int, int]


def row_count(count: int) -> int:
    return -(-count // ROW)


@lru_cache(maxsize=64)
def pieces(count: int) -> tuple[Piece, ...]:
    """All rows of a block, in pieces that fit the cache; a short row is a piece of its own."""
    whole = count // ROW
    step = CHUNK // ROW
    found = [
        Piece(slice(a * ROW, b * ROW), slice(a, b), (b - a, ROW))
        for a in range(0, whole, step)
        for b in (min(a + step, whole),)
    ]
    if count % ROW:
        found.append(Piece(slice(whole * ROW, count), slice(whole, whole + 1), (1, count % ROW)))
    return tuple(found)
