"""The gradient-noise scale: the batch beyond which a larger one is waste (McCandlish et al., 2018).

A batch of B samples gives the true gradient G and noise that shrinks with B. With Σ the covariance
of one sample's gradient,

    E |G_B|² = |G|² + tr Σ / B

so squared norms at two batch sizes b < B tell both parts, without bias:

    |G|² ≈ (B·|G_B|² − b·|G_b|²) / (B − b)
    tr Σ ≈ (|G_b|² − |G_B|²) / (1/b − 1/B)

The simple noise scale is N = tr Σ / |G|². One step's estimate of |G|² is noisy and may be below 0,
and a mean of ratios would be biased, so each part is averaged over many steps first. To get where
a run is going, batches of B take, in parts of the least possible,

    steps: 1 + N / B        samples: 1 + B / N

At B = N both are twice the least. Far below N a batch twice as large needs half the steps; far
above it nearly as many, and the samples are wasted.

The interval is Fieller's for a ratio of means: those N for which the mean of tr Σ − N·|G|² over
the steps does not differ from 0. It has no end where |G|² itself might be 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from paceline.measure.student import t95


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseScale:
    """`samples` is the scale N in samples a batch, `low` and `high` bound a 95 % interval.

    `samples` is NaN where the gradient does not rise above its noise; `high` is infinite where it
    might not.
    """

    samples: float
    low: float
    high: float
    signal: float  # |G|²
    noise: float  # tr Σ
    steps: int

    @property
    def sentence(self) -> str:
        if math.isnan(self.samples):
            at_least = f"; it is {self.low:,.0f} samples or more" if self.low else ""
            return (
                f"the noise scale cannot be told from {self.steps} steps{at_least}: "
                "record more of them, or a larger batch"
            )
        end = "no end known" if math.isinf(self.high) else f"{self.high:,.0f}"
        return (
            f"a batch of more than {self.samples:,.0f} samples ({self.low:,.0f} to {end}), over "
            "all workers together, is mostly waste: it costs more samples than it saves steps"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Needed:
    """What a batch needs to get as far, in parts of the least that any batch needs."""

    steps: float
    samples: float


def noise_scale(
    small_squares: Sequence[float], large_squares: Sequence[float], *, small: int, large: int
) -> NoiseScale:
    """From the squared norms of gradients of `small` and of `large` samples, a pair a step.

    With many workers there is nothing to measure anew: `small` is what one worker's gradient was
    made from, and `large` the round's, whose gradient is their mean. The mean of all workers'
    squared norms tells more than that of one.
    """
    few, many = np.asarray(small_squares, np.float64), np.asarray(large_squares, np.float64)
    if not 0 < small < large:
        raise ValueError(f"a batch of {large} is not larger than one of {small}")
    if few.ndim != 1 or few.shape != many.shape or not len(few):
        raise ValueError("each step needs the squared norms of both gradients")
    signals = (large * many - small * few) / (large - small)
    noises = (few - many) / (1 / small - 1 / large)
    signal, noise = float(signals.mean()), float(noises.mean())
    low, high = _interval(signals.tolist(), noises.tolist())
    return NoiseScale(
        samples=max(0.0, noise / signal) if signal > 0 else math.nan,
        low=low,
        high=high,
        signal=signal,
        noise=noise,
        steps=len(few),
    )


def needed(batch: float, scale: float) -> Needed:
    """What batches of so many samples need, where the noise scale is `scale`."""
    return Needed(steps=1 + scale / batch, samples=1 + batch / scale if scale else math.inf)


def _interval(signals: list[float], noises: list[float]) -> tuple[float, float]:
    """The N ≥ 0 with A·N² − 2·H·N + C ≤ 0: all that Fieller's theorem does not refuse.

        A = g² − t²·v_g        H = s·g − t²·c        C = s² − t²·v_s

    g and s are the means of signal and noise, v and c the variances and covariance of those means.
    """
    if len(signals) < 2:
        return 0.0, math.inf
    t = t95(len(signals) - 1)
    spread = np.cov(signals, noises) / len(signals)
    g, s = float(np.mean(signals)), float(np.mean(noises))
    a = g * g - t * t * float(spread[0, 0])
    h = s * g - t * t * float(spread[0, 1])
    c = s * s - t * t * float(spread[1, 1])
    root = math.sqrt(max(0.0, h * h - a * c))
    if a > 0 and g > 0:
        return max(0.0, (h - root) / a), max(0.0, (h + root) / a)
    # No end above. Below there is one where the noise is surely above 0.
    return (max(0.0, (h - root) / a) if a < 0 and c > 0 and s > 0 else 0.0), math.inf
