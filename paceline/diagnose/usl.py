"""The Universal Scalability Law (Gunther): workers queue for what is shared, and tell each other.

    X(n) = λ · n / (1 + σ·(n − 1) + κ·n·(n − 1))

λ is the rate of one worker, σ ≥ 0 the share of the work for which they queue (Amdahl's law is
κ = 0), κ ≥ 0 what each pair of them costs. With κ > 0 there is a most, beyond which more workers
are slower:

    dX/dn = 0        n* = √((1 − σ) / κ)        1 where σ ≥ 1, ∞ where κ = 0 and σ < 1
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from paceline.diagnose.fitting import Array, check, fit
from paceline.diagnose.scaling import more_than_added

FEWEST = 3  # worker counts: as many as the law has numbers
FAR = 0.10  # off the curve, beyond which a point is told
WIDE = 1.5  # from the least to the largest peak, beyond which it is not known well


def usl(workers: float, sigma: float, kappa: float) -> float:
    """The speedup of n workers, X(n) / λ."""
    return workers / (1 + sigma * (workers - 1) + kappa * workers * (workers - 1))


def peak(sigma: float, kappa: float) -> float:
    """The n* beyond which it gets slower; 1 if a second worker never pays, ∞ if there is none."""
    if sigma >= 1:
        return 1.0
    return max(1.0, math.sqrt((1 - sigma) / kappa)) if kappa else math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Usl:
    """The law that fits measured rates best, and how far to trust it.

    `low` and `high` are the least and the largest `peak` that come out when any one worker count
    is left away; 1 and infinity where there are too few to leave one away. `off` tells how far
    each point lies above the curve (below: negative), as a share of it. `caveats` are sentences.
    """

    sigma: float
    kappa: float
    one: float  # λ
    peak: float
    low: float
    high: float
    off: tuple[float, ...]
    caveats: tuple[str, ...]

    def rate(self, workers: float) -> float:
        return self.one * usl(workers, self.sigma, self.kappa)

    @property
    def best(self) -> int | None:
        """The number of workers with the highest rate; None if more are always faster."""
        if math.isinf(self.peak):
            return None
        return max(math.floor(self.peak), math.ceil(self.peak), key=self.rate)


def fit_usl(workers: Sequence[int], rates: Sequence[float]) -> Usl | None:
    """The law from rates (or speedups); None below three different worker counts.

    Linear in what a unit of work takes, and fitted robustly there (see `fitting`):

        n / X = a + b·(n − 1) + c·n·(n − 1)        λ = 1/a, σ = b/a, κ = c/a
    """
    counts, speeds = check(workers, rates)
    different = np.unique(counts)
    if len(different) < FEWEST:
        return None
    one, sigma, kappa = _numbers(counts, speeds)
    low, high = 1.0, math.inf
    if len(different) > FEWEST:
        without = [counts != count for count in different]
        peaks = [peak(*_numbers(counts[some], speeds[some])[1:]) for some in without]
        low, high = min(peaks), max(peaks)
    curve = np.array([one * usl(count, sigma, kappa) for count in counts])
    off = speeds / curve - 1
    most = peak(sigma, kappa)
    return Usl(
        sigma=sigma,
        kappa=kappa,
        one=one,
        peak=most,
        low=low,
        high=high,
        off=tuple(off.tolist()),
        caveats=tuple(_caveats(counts, speeds, off, most, low, high)),
    )


def _numbers(counts: Array, speeds: Array) -> tuple[float, float, float]:
    columns = [np.ones(len(counts)), counts - 1, counts * (counts - 1)]
    a, b, c = fit(columns, counts / speeds, needed=(0,))
    return float(1 / a), float(b / a), float(c / a)


def _caveats(
    counts: Array, speeds: Array, off: Array, most: float, low: float, high: float
) -> list[str]:
    told = []
    different = np.unique(counts)
    if len(different) == FEWEST:
        told.append("three worker counts cannot show whether the law holds: measure a fourth")
    worst = int(np.argmax(np.abs(off)))
    if abs(off[worst]) > FAR:
        side = "above" if off[worst] > 0 else "below"
        told.append(
            f"the rate of {_workers(counts[worst])} lies {100 * abs(off[worst]):.0f} % {side} the "
            "curve: measure it again, or do not trust one law for all of them"
        )
    # In units of the fewest, since one alone may not have been measured.
    typical = {int(n): float(np.median(speeds[counts == n])) for n in different}
    unit = typical[int(different[0])] / different[0]
    if steps := more_than_added({n: rate / unit for n, rate in typical.items()}, FAR):
        few, many = steps[0]
        told.append(
            f"from {few} to {many} workers it gained more than was added, which no such law allows"
        )
    if len(different) > FEWEST and high > WIDE * low:
        end = "none at all" if math.isinf(high) else f"{high:.1f}"
        told.append(f"leaving one worker count away moves the most from {low:.1f} to {end}")
    if different[-1] < most < math.inf:
        told.append(f"the most lies beyond the {different[-1]:g} workers that were measured")
    return told


def _workers(count: float) -> str:
    return "1 worker" if count == 1 else f"{count:g} workers"
