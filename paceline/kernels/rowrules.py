"""Update rules of sparse tables as compiled loops: rows that a gradient touches change, no others.

Each is torch's own for sparse gradients, or the paper's. Of a weight w with gradient g, at rate η:

    sgd        w ← w − η (g + aw)
    adagrad    s ← s + h²; w ← w − η h / (√s + b), with h = g + aw
    ftrl       s ← s + g − (√(r + g²) − √r) w / η; r ← r + g²
               w ← 0 where |s| ≤ b, else (sgn(s) b − s) / ((c + √r) / η + a)
               where r = 0, s is first what w follows from: − (c / η + a) w − sgn(w) b
    adam       s ← s + a (g − s); r ← r + b (g² − r); w ← w − η s / (√r + c)

A gradient of a batch is applied by `update`; loops that go sample by sample are in `descending.py`.

Numbers of rows are taken as unsigned: otherwise each use asks first whether it counts from the end.
"""

from __future__ import annotations

import math

import numpy as np

from paceline.kernels.ahead import bring
from paceline.kernels.jit import compiled, inlined
from paceline.kernels.sparse import AHEAD

TINY = 1e-30
SGD, ADAGRAD, FTRL, ADAM = range(4)


@inlined
def changed(rule, w, s, r, g, lr, a, b, c):  # type: ignore[no-untyped-def]
    """A weight and its state after a gradient."""
    if rule == SGD:
        return w - lr * (g + a * w if a != 0 else g), s, r
    if rule == ADAGRAD:
        h = g + a * w if a != 0 else g  # without decay often the same for all rows of a sample
        s += h * h
        return w - lr * h / (math.sqrt(s) + b), s, r
    if rule == FTRL:
        if not lr > TINY:  # a rate of nothing changes nothing
            return w, s, r
        if r == 0 and w != 0:
            s = np.float32(-w * (c / lr + a) - math.copysign(b, w))
        more = r + g * g
        root = math.sqrt(more)
        s += g - (root - math.sqrt(r)) / lr * w
        beyond = abs(s) - b
        if beyond <= 0:
            return np.float32(0.0), s, more
        return -math.copysign(beyond, s) / ((c + root) / lr + a), s, more
    s += a * (g - s)
    r += b * (g * g - r)
    return w - lr * s / (math.sqrt(r) + c), s, r


@compiled
def update(weights, state, rows, gradient, rule, lr, a, b, c):  # type: ignore[no-untyped-def]
    """Apply the gradient of these rows."""
    states, s, r = state.shape[1], np.float32(0.0), np.float32(0.0)
    last = len(rows) - 1
    for row in range(len(rows)):
        ahead = rows[min(row + AHEAD, last)]
        bring(weights, ahead)
        if states > 0:  # it may lie elsewhere
            bring(state, ahead)
        at = np.uint64(rows[row])
        for column in range(weights.shape[1]):
            if states > 0:
                s = state[at, 0, column]
            if states > 1:
                r = state[at, 1, column]
            w, s, r = changed(rule, weights[at, column], s, r, gradient[row, column], lr, a, b, c)
            weights[at, column] = w
            if states > 0:
                state[at, 0, column] = s
            if states > 1:
                state[at, 1, column] = r
