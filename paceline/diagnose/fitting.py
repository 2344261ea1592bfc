"""Least squares for laws of two or three numbers, none of which can be negative.

A law says y ≈ Σ_j c_j · x_j with c ≥ 0. Times and rates are wrong by a share of themselves, so
what is made small are relative residuals:

    r_i = (Σ_j c_j · x_ij) / y_i − 1        minimise Σ_i ρ(r_i)

ρ is Huber's: the square up to k = 1.345 times the residuals' own scale, a line beyond it, so that
an odd point pulls no harder from far away than from there. The scale is 1.4826 · median |r_i|,
made larger for the numbers that were fitted. The least of it is found by least squares with
weights, again and again:

    w_i = min(1, k · scale / |r_i|)

With c ≥ 0, the best c is what plain least squares finds for some of the columns, 0 for the others.
Of three columns there are so few choices that all are tried.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

HUBER = 1.345
TURNS = 100
NOTHING = 1e-12  # a relative residual nobody measures


def fit(columns: Sequence[Array], y: Array, needed: Sequence[int] = ()) -> Array:
    """The numbers c of the law, one a column; those of the `needed` columns are above 0."""
    rows = np.stack(columns, axis=1) / y[:, None]  # wanted: 1 everywhere
    points, numbers = rows.shape
    found = _least(rows, np.ones(points), needed)
    if points <= numbers:
        return found
    spread = 1.4826 * math.sqrt(points / (points - numbers))
    for _ in range(TURNS):
        off = np.abs(rows @ found - 1)
        scale = spread * float(np.median(off))
        if scale < NOTHING:
            break
        weights = np.minimum(1, HUBER * scale / np.maximum(off, NOTHING))
        before, found = found, _least(rows, weights, needed)
        if np.allclose(found, before, rtol=1e-6, atol=0):
            break
    return found


def check(workers: Sequence[int], rates: Sequence[float]) -> tuple[Array, Array]:
    """The points of a curve as arrays; ValueError for what is no curve."""
    counts, speeds = np.asarray(workers, np.float64), np.asarray(rates, np.float64)
    if counts.ndim != 1 or counts.shape != speeds.shape:
        raise ValueError("each number of workers needs one rate")
    if not (np.isfinite(counts).all() and np.isfinite(speeds).all()):
        raise ValueError("numbers of workers and rates must be finite")
    if (counts < 1).any() or (speeds <= 0).any():
        raise ValueError("numbers of workers begin at 1, and rates are above 0")
    return counts, speeds


def _least(rows: Array, weights: Array, needed: Sequence[int]) -> Array:
    """Fewer columns win where more bring nothing."""
    root = np.sqrt(weights)
    best, least = np.zeros(rows.shape[1]), math.inf
    for chosen in _choices(rows.shape[1], needed):
        some = rows[:, chosen] * root[:, None]
        answer = np.linalg.lstsq(some, root, rcond=None)[0]
        cost = float(np.sum((some @ answer - root) ** 2))
        if answer.min() > 0 and cost < least - NOTHING**2 * len(rows):
            best, least = np.zeros(rows.shape[1]), cost
            best[list(chosen)] = answer
    return best


def _choices(columns: int, needed: Sequence[int]) -> Iterator[list[int]]:
    for size in range(1, columns + 1):
        for chosen in combinations(range(columns), size):
            if set(needed) <= set(chosen):
                yield list(chosen)
