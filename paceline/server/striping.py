"""Stripes of a sparse table, and what it takes to put back what was half changed in one.

A stripe has the rows whose number leaves the same rest when divided by how many stripes there are:
it has one writer at a time, and popular rows are spread over all. No torch and no numba here.
"""

from __future__ import annotations

from typing import NamedTuple

STRIPES = 8  # whoever waits for one finds another free
ID = 2  # floats that the number of a row takes
NOTED, WORD, BEFORE, COUNTS = range(4)  # of a stripe; from the last on one a table


class Size(NamedTuple):
    """Of one table."""

    rows: int
    columns: int

    def held(self, states: int) -> int:
        """Floats of weights and state."""
        return self.rows * self.columns * (1 + states)

    def journal(self, states: int, stripes: int = STRIPES) -> int:
        """Floats to note all of its rows at once."""
        return _even(stripes * self.largest(stripes) * (ID + self.columns * (1 + states)))

    @property
    def pushed(self) -> int:
        """Floats of a gradient of all its rows."""
        return _even(self.rows * (ID + self.columns))

    def largest(self, stripes: int) -> int:
        """The most rows a stripe has."""
        return -(-self.rows // stripes)


def _even(floats: int) -> int:
    """As many or one more: what follows begins where the number of a row may."""
    return floats + floats % 2


def undo_words(tables: int) -> int:
    """Of the board, a stripe."""
    return COUNTS + tables


def share_of(size: Size, server: int, servers: int) -> Size:
    """What one of several servers has of a table."""
    return size._replace(rows=len(range(server, size.rows, servers)))
