"""What more workers brought, as ratios with intervals.

A ratio says something only of runs that were interleaved on the same machine; whoever calls sees
to that.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Ratio:
    """A ratio of two rates and its 95 % interval.

    Where a rate is unknown, `value` is NaN; where an interval is, it is all of 0 to infinity.
    """

    value: float
    low: float
    high: float


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


def efficiency(gain: Ratio, workers: int) -> Ratio:
    """The speedup a worker, E = S / n: 1 if each of n is as useful as one alone."""
    return Ratio(gain.value / workers, gain.low / workers, gain.high / workers)


def _relative_error(throughput: Mapping[str, Any]) -> float:
    low, high = throughput["low"], throughput["high"]
    if low is None or high is None:
        return math.inf
    return float(high - low) / (2 * float(throughput["samples_per_second"]))
