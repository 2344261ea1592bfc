"""What more workers brought, as ratios.

A ratio says something only of runs that were interleaved on the same machine; whoever calls sees
to that. docs/SCALING.md tells what each of them means.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar


@dataclass(frozen=True, slots=True)
class Ratio:
    """A ratio of two rates and its 95 % interval.

    Where a rate is unknown, `value` is NaN; where an interval is, it is all of 0 to infinity.
    """

    value: float
    low: float
    high: float

    def __truediv__(self, by: float) -> Ratio:
        return Ratio(self.value / by, self.low / by, self.high / by)


Gain = TypeVar("Gain", float, Ratio)


def speedup(many: Mapping[str, Any], one: Mapping[str, Any]) -> Ratio:
    """How many times as fast, from the `throughput` parts of two summaries.

    To first order the relative error of a rate r is the error of log r, and errors of
    independent runs add as squares:

        S = r_many / r_one        e_r = (high_r − low_r) / 2r
        interval = S · exp(±√(e_many² + e_one²))
    """
    fast, slow = many["samples_per_second"], one["samples_per_second"]
    if not fast or not slow:
        return Ratio(math.nan, 0.0, math.inf)
    value = fast / slow
    error = math.hypot(_relative_error(many), _relative_error(one))
    if math.isinf(error):
        return Ratio(value, 0.0, math.inf)
    return Ratio(value, value * math.exp(-error), value * math.exp(error))


def strong_speedup(one: float, many: float) -> float:
    """How many times as fast the same work was done, from the seconds it took.

    S = T₁ / Tₙ
    """
    return one / many


def weak_speedup(one: float, many: float, growth: float) -> float:
    """How many times as much was done in a second where the work grew too, from the seconds.

    With `growth` g = Wₙ / W₁, which is n where every worker has as much to do as one had alone:

        S = (Wₙ / Tₙ) / (W₁ / T₁) = g · T₁ / Tₙ
    """
    return growth * one / many


def efficiency(gain: Gain, workers: float) -> Gain:
    """The speedup a worker, E = S / n: 1 if each of n is as useful as one alone."""
    return gain / workers


def more_than_added(speedups: Mapping[int, float], slack: float = 0.0) -> list[tuple[int, int]]:
    """Steps from a number of workers to the next larger that gained more than was added.

    k more workers can bring k times one worker's speed at most, or that of those who are there
    if they are faster, as long as nobody was held back:

        S(n + k) ≤ S(n) + k · max(1, S(n) / n)

    Where that does not hold, by more than a share `slack`, the fewer were held back, or something
    else has changed.
    """
    counts = sorted(speedups)
    return [
        (few, many)
        for few, many in pairwise(counts)
        if speedups[many] > (1 + slack) * _at_most(few, speedups[few], many)
    ]


def _at_most(few: int, gain: float, many: int) -> float:
    return gain + (many - few) * max(1.0, gain / few)


def _relative_error(throughput: Mapping[str, Any]) -> float:
    low, high = throughput["low"], throughput["high"]
    if low is None or high is None:
        return math.inf
    return float(high - low) / (2 * float(throughput["samples_per_second"]))
