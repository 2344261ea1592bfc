"""A figure measured several times: its median, and an interval that takes nothing for granted.

The median of all that could be measured lies between the k-th smallest and the k-th largest of n
repeats unless fewer than k of them fell on one side of it, which has a known chance, whatever they
are distributed like:

    P(missed) = 2 · Σ_{i<k} C(n, i) / 2ⁿ ≤ 5 %

So one repeat that something else on the machine spoilt widens nothing. Fewer than six repeats
cannot give such an interval, and have none.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from paceline.measure.student import NORMAL

MISSED = 0.05
MANY = 100  # repeats, of which those on one side are as good as normally distributed


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """A median, and its 95 % interval; None where repeats are too few for one."""

    value: float
    low: float | None = None
    high: float | None = None
    repeats: int = 1

    @property
    def relative(self) -> float | None:
        """Half the interval as a part of the value: how steady the figure is."""
        if self.low is None or self.high is None or not self.value:
            return None
        return (self.high - self.low) / (2 * abs(self.value))


def spread(values: Sequence[float]) -> Spread:
    """Of at least one repeat."""
    ranked = sorted(values)
    k = _rank(len(ranked))
    return Spread(
        value=statistics.median(ranked),
        low=ranked[k - 1] if k else None,
        high=ranked[-k] if k else None,
        repeats=len(ranked),
    )


def paired(over: Sequence[float], under: Sequence[float]) -> Spread:
    """How many times as large, from repeats that were made in turns: a ratio each turn."""
    return spread([a / b for a, b in zip(over, under, strict=True)])


def percentile(values: Sequence[float], part: float) -> float:
    """The value that `part` of them do not exceed."""
    ranked = sorted(values)
    return ranked[min(len(ranked) - 1, math.ceil(part * len(ranked)) - 1)]


def _rank(repeats: int) -> int:
    """The largest k that still misses rarely enough; 0 if none does."""
    if repeats > MANY:
        return int(repeats / 2 - NORMAL * math.sqrt(repeats) / 2)
    k, missed = 0, 0.0
    while k < repeats:
        missed += 2 * math.comb(repeats, k) / 2**repeats
        if missed > MISSED:
            break
        k += 1
    return k
