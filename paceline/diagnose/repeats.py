"""Figures from repeats, with intervals that hold for as few as there are.

What varies from run to run (where memory lies, what else the machine does) is not seen inside a
run: its steps can agree to a thousandth and the next run be two percent off. So the unit is the
repeat, and what its steps vary by is in it already. With xᵢ the logarithm of repeat i's figure, or
of its ratio to another cell's figure in the same block, n of them:

    value = median of (xᵢ + xⱼ)/2 over i ≤ j            (Hodges and Lehmann)
    n < 6:  x̄ ± t_{n−1} · s/√n                          Student's
    n ≥ 6:  the k-th smallest and largest (xᵢ + xⱼ)/2   Wilcoxon's signed ranks

with the largest k for which 2·P(W < k) ≤ 5 %. The second needs nothing but symmetry, which two
cells that do the same have by the order of their blocks (`study/order.py`), and one spoilt repeat
widens it little; but fewer than six repeats cannot give it. Student's is right for normal noise and
wide for what is not. A bootstrap is neither: with three repeats its 95 % interval holds in about
three of four cases (`tests/unit/diagnose/test_diagnose_repeats.py` shows all three).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from functools import cache

from paceline.measure.spread import MISSED, Spread
from paceline.measure.student import NORMAL, t95

RANKED = 6  # repeats from which ranks give an interval
EXACT = 60  # repeats up to which the distribution of signed ranks is counted out
POWER = 0.8416  # standard errors, beyond the interval, with which four of five are found
MOST = 1000  # repeats nobody would make


def level(values: Sequence[float]) -> Spread:
    """A positive figure that was measured once a repeat."""
    return _grown(_estimate([math.log(value) for value in values]))


def mean_level(values: Sequence[float]) -> Spread:
    """A figure that may be zero, or of which differences count, as of an accuracy."""
    return _estimate(list(values))


def ratio(over: Sequence[float], under: Sequence[float]) -> Spread:
    """How many times as large, from figures of the same blocks."""
    return _grown(_estimate(_logs(over, under)))


def difference(over: Sequence[float], under: Sequence[float]) -> Spread:
    """How much more, from figures of the same blocks."""
    return _estimate([a - b for a, b in zip(over, under, strict=True)])


def unpaired(over: Sequence[float], under: Sequence[float]) -> Spread:
    """How many times as large, from repeats that have nothing to do with one another."""
    return _grown(_welch([math.log(each) for each in over], [math.log(each) for each in under]))


def unpaired_difference(over: Sequence[float], under: Sequence[float]) -> Spread:
    """How much more, from such repeats."""
    return _welch(list(over), list(under))


def differs(found: Spread, same: float = 1.0) -> bool | None:
    """Whether it is not `same`, beyond the noise; None where the noise is not known."""
    if found.low is None or found.high is None:
        return None
    return not found.low <= same <= found.high


def repeats_needed(over: Sequence[float], under: Sequence[float], effect: float) -> int | None:
    """So many repeats find a difference of that share in four of five cases, with this noise.

    The least n with (t_{n−1} + 0.84) · s/√n ≤ log(1 + effect); None where there is no noise to
    tell from, or no end to it.
    """
    logs = _logs(over, under)
    if len(logs) < 2:
        return None
    noise, least = statistics.stdev(logs), math.log1p(effect)
    return next(
        (n for n in range(2, MOST) if (t95(n - 1) + POWER) * noise / math.sqrt(n) <= least), None
    )


def _logs(over: Sequence[float], under: Sequence[float]) -> list[float]:
    return [math.log(a / b) for a, b in zip(over, under, strict=True)]


def _estimate(values: list[float]) -> Spread:
    count = len(values)
    if count < 2:
        return Spread(value=values[0])
    walsh = _walsh(values)
    value = statistics.median(walsh)
    if count >= RANKED:
        k = _rank(count)
        return Spread(value=value, low=walsh[k - 1], high=walsh[-k], repeats=count)
    middle = statistics.fmean(values)
    half = t95(count - 1) * statistics.stdev(values) / math.sqrt(count)
    return Spread(value=value, low=middle - half, high=middle + half, repeats=count)


def _welch(a: list[float], b: list[float]) -> Spread:
    """Two means apart, each with a spread of its own.

        e = √(s²ₐ/n + s²_b/m)        interval = ā − b̄ ± t_v · e

    with v the degrees of freedom of Welch and Satterthwaite, rounded down.
    """
    value, fewest = statistics.fmean(a) - statistics.fmean(b), min(len(a), len(b))
    if fewest < 2:
        return Spread(value=value, repeats=fewest)
    parts = [statistics.variance(each) / len(each) for each in (a, b)]
    weights = sum(part**2 / (len(each) - 1) for part, each in zip(parts, (a, b), strict=True))
    freedom = sum(parts) ** 2 / weights if weights else len(a) + len(b) - 2
    half = t95(max(1, int(freedom))) * math.sqrt(sum(parts))
    return Spread(value=value, low=value - half, high=value + half, repeats=fewest)


def _walsh(values: list[float]) -> list[float]:
    """The mean of each two, and of each with itself, sorted."""
    return sorted((a + b) / 2 for i, a in enumerate(values) for b in values[i:])


def _grown(found: Spread) -> Spread:
    """Back from logarithms."""
    low, high = (None if bound is None else math.exp(bound) for bound in (found.low, found.high))
    return Spread(value=math.exp(found.value), low=low, high=high, repeats=found.repeats)


@cache
def _rank(count: int) -> int:
    """The largest k with 2·P(W < k) ≤ 5 %, where W is a sum of ranks with signs by coin."""
    if count > EXACT:
        mean = count * (count + 1) / 4
        deviation = math.sqrt(count * (count + 1) * (2 * count + 1) / 24)
        return int(mean - NORMAL * deviation)
    ways = [1]  # in which signs can add up to each sum
    for rank in range(1, count + 1):
        longer = ways + [0] * rank
        for total, many in enumerate(ways):
            longer[total + rank] += many
        ways = longer
    k, below = 0, 0
    while 2 * (below + ways[k]) <= MISSED * 2**count:
        below += ways[k]
        k += 1
    return k
