"""Amdahl's law: a part of the work is done by one worker, however many there are.

    S(n) = 1 / (f + (1 − f) / n)        S(∞) = 1 / f

f is the serial fraction. Turned round for one measured speedup it is Karp and Flatt's:

    f = (1/S − 1/n) / (1 − 1/n)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from paceline.diagnose.fitting import check, fit


def amdahl(workers: float, serial: float) -> float:
    """The speedup of n workers, S(n)."""
    return 1 / (serial + (1 - serial) / workers)


def karp_flatt(speedup: float, workers: float) -> float:
    """The serial fraction that one speedup with two or more workers speaks of.

    The same for all n where Amdahl's law holds; it grows with n where what each worker adds in
    exchange and waiting does. Above 1 the workers were slower than one, below 0 faster than n.
    """
    if workers <= 1:
        raise ValueError("one worker has no serial fraction: it takes two to share")
    return (1 / speedup - 1 / workers) / (1 - 1 / workers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Amdahl:
    """The law that fits measured rates best.

    `off` tells how far each point lies above the curve (below: negative), as a share of it.
    """

    serial: float
    one: float  # the rate of one worker, on the curve
    off: tuple[float, ...]

    def rate(self, workers: float) -> float:
        return self.one * amdahl(workers, self.serial)

    @property
    def limit(self) -> float:
        """The speedup that no number of workers exceeds."""
        return 1 / self.serial if self.serial else math.inf


def fit_amdahl(workers: Sequence[int], rates: Sequence[float]) -> Amdahl | None:
    """The serial fraction from rates (or speedups); None below two different worker counts.

    The law is linear in what a unit of work takes, X being the rate:

        n / X = p + s·n        f = s / (s + p)        X(1) = 1 / (s + p)

    With p, s ≥ 0 the fraction lies between 0 and 1. Only from three counts on does `off`
    say whether the law holds.
    """
    counts, speeds = check(workers, rates)
    if len(np.unique(counts)) < 2:
        return None
    shared, serial = fit([np.ones(len(counts)), counts], counts / speeds)
    one, fraction = float(1 / (shared + serial)), float(serial / (shared + serial))
    curve = [one * amdahl(count, fraction) for count in counts]
    return Amdahl(serial=fraction, one=one, off=tuple((speeds / curve - 1).tolist()))
