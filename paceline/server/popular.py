"""Samples one by one through a table that others may change too, and the rows they all want.

A worker begins to keep popular rows for itself once their weights have settled: at first each
worker would go the same way by itself, and all of them together too far. For the same reason it
keeps them for some thousand samples at most. Whether others know of a change that late matters
little: what one sample changes in a row that thousands have changed before is next to nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from paceline.kernels import popular
from paceline.kernels.arrays import Floats
from paceline.kernels.descending import DESCENDING, HELD, LANES

PLACES = 2048  # with a table of eight bytes a row, small enough for the nearest cache
KEPT = 8000  # samples, before others see what changed
OFTEN = 4  # a row has to be in use in those, to be worth the way there and back
SETTLED = 16_000  # samples
AGAIN = 500_000  # samples, after which others may be popular

Numbers = npt.NDArray[Any]
Told = tuple[Any, ...]  # of a rule: its code and four numbers
Found = tuple[float, float, int]  # loss, the bias's gradient, the highest row


class Places:
    """A small table, and whose rows are in it."""

    def __init__(self, places: int, width: int) -> None:
        self.tags = np.full(places, popular.FREE, np.uint32)
        self.near = np.zeros((places, width), np.float32)


def descend(table: Floats, told: Told, *samples: Any, places: Places | None = None) -> Found:
    """Find gradients of samples and apply them, one by one."""
    rule, *numbers = told
    places = places or Places(2, table.shape[1])
    counts = samples[2]
    most = max(1, int(counts.max(initial=0)))
    ways, steps = np.empty((HELD, most), np.int64), np.zeros(most + LANES, np.float32)
    loop = DESCENDING[rule]
    found: Found = loop(table, places.near, places.tags, ways, steps, *numbers, *samples)
    return found


class Popular:
    """The popular rows of one table, as one worker keeps them."""

    def __init__(self, width: int) -> None:
        self._places = Places(PLACES, width)
        self._before = np.empty_like(self._places.near)
        self._votes = np.empty(PLACES, np.int32)
        self._chosen: npt.NDArray[np.int64] = np.empty(0, np.int64)
        self._seen, self._next = 0, SETTLED
        self._elect(np.empty(0, np.int64), np.empty(0, np.int64))  # its loop is here from now on

    def descend(
        self,
        table: Floats,
        told: Told,
        ids: Numbers,
        values: Numbers,
        counts: Numbers,
        labels: Numbers,
        bias: np.float32,
        scale: np.float32,
    ) -> Found:
        """As `descend`; on return the table has all of it."""
        loss, tilt, highest = 0.0, 0.0, 0
        for begin in range(0, max(1, len(labels)), KEPT):
            some = slice(begin, begin + KEPT)
            at = ids[some], values[some], counts[some]
            more, tilted, high = self._some(table, told, *at, labels[some], bias, scale)
            loss, tilt, highest = loss + more, tilt + tilted, max(highest, high)
            if highest >= len(table):
                break
        return loss, tilt, highest

    def _some(self, table: Floats, told: Told, *samples: Any) -> Found:
        mine = self._places.tags, self._chosen, self._places.near, self._before
        popular.borrow(table, *mine)
        found = descend(table, told, *samples, places=self._places)
        popular.give_back(table, *mine, *told)
        if found[-1] < len(table):
            self._count(samples[0], samples[2])
        return found

    def _count(self, ids: Numbers, counts: Numbers) -> None:
        """Now and then rows are chosen by the samples that were just taken."""
        self._seen += len(counts)
        if self._seen >= self._next:
            self._next = self._seen + AGAIN
            self._elect(ids, counts)

    def _elect(self, ids: Numbers, counts: Numbers) -> None:
        chosen = np.empty(PLACES, np.int64)
        count = popular.elect(ids, counts, OFTEN, self._places.tags, self._votes, chosen)
        self._chosen = chosen[:count]
