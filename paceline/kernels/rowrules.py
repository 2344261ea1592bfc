"""Update rules of sparse tables as compiled loops: rows that a gradient touches change, no others.

Each is torch's own for sparse gradients, or the paper's. Of a weight w with gradient g, at rate η:

    sgd        w ← w − η (g + aw)
    adagrad    s ← s + h²; w ← w − η h / (√s + b), with h = g + aw
    ftrl       s ← s + g − (√(r + g²) − √r) w / η; r ← r + g²
               w ← 0 where |s| ≤ b, else (sgn(s) b − s) / ((c + √r) / η + a)
    adam       s ← s + a (g − s); r ← r + b (g² − r); w ← w − η s / (√r + c)

A gradient of a batch is applied by `update`. Where nobody minds in which order rows change, a loop
of `DESCENDING` finds gradients and applies them sample by sample.

Numbers of rows are taken as unsigned: otherwise each use asks first whether it counts from the end.
"""

from __future__ import annotations

import math

import numpy as np

from paceline.kernels.ahead import bring
from paceline.kernels.jit import compiled, inlined, pasted
from paceline.kernels.places import array_at
from paceline.kernels.sparse import AHEAD

TINY = 1e-30
SGD, ADAGRAD, FTRL, ADAM = range(4)
SAMPLES_AHEAD = 2  # whose rows are brought near before they are used
FACTORS = 256  # of at most 2 each: their product is a number still


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


@inlined
def change_row(rule, table, at, g, lr, a, b, c):  # type: ignore[no-untyped-def]
    """Apply a gradient to a row [weight and state]."""
    none = np.float32(0.0)
    s = table[at, 1] if rule != SGD else none
    r = table[at, 2] if rule in (FTRL, ADAM) else none
    w, s, r = changed(rule, table[at, 0], s, r, g, lr, a, b, c)
    table[at, 0] = w
    if rule != SGD:
        table[at, 1] = s
    if rule in (FTRL, ADAM):
        table[at, 2] = r


@inlined
def entries_of(ids_at, counts, sample):  # type: ignore[no-untyped-def]
    """The rows that a sample has entries of; none of one after the last."""
    there = sample < len(counts)
    return array_at(ids_at[sample] if there else 0, counts[sample] if there else 0, np.uint32)


@inlined
def bring_rest(table, coming, first, highest):  # type: ignore[no-untyped-def]
    """Have those rows near from the first on; the highest, of these and of those before."""
    for entry in range(first, len(coming)):
        highest = max(highest, coming[entry])
        bring(table, coming[entry])
    return highest


@pasted
def _descend(  # type: ignore[no-untyped-def]
    rule, plain, table, lr, a, b, c, ids_at, values_at, counts, labels, bias, scale
):
    """Change the weights of each sample at once: the loss, the bias's gradient, the highest row.

    The table is [rows, weight and state]: a row of it is looked for in memory once, while samples
    before are at work, and is still at hand when it is changed. Samples' entries are where they
    are; it ends before one that has a row beyond the table. With `plain` all entries are one, and
    weights do not decay.

    The loss is Σ log(1 + e^−|z|) + max(z, 0) − yz. Of some samples at a time, log of the product.
    """
    loss, tilt, highest = 0.0, 0.0, np.uint32(0)
    product, factors = 1.0, 0
    valued, decay = not plain and len(values_at) > 0, np.float32(0) if plain else a
    for sample in range(-SAMPLES_AHEAD, len(labels)):
        if highest >= len(table):
            break
        coming = entries_of(ids_at, counts, sample + SAMPLES_AHEAD)
        if sample < 0:
            highest = bring_rest(table, coming, 0, highest)
            continue
        ids = entries_of(ids_at, counts, sample)
        values = array_at(values_at[sample] if valued else 0, len(ids), np.float32)
        z = bias
        for entry in range(len(ids)):
            weight = table[ids[entry], 0]
            z += weight * values[entry] if valued else weight
        small = math.exp(-abs(z))
        chance = (1.0 if z >= 0 else small) / (1.0 + small)
        loss += max(z, 0.0) - labels[sample] * z
        product *= 1.0 + small
        factors += 1
        if factors == FACTORS:
            loss += math.log(product)
            product, factors = 1.0, 0
        push = np.float32((chance - labels[sample]) * scale)
        tilt += float(push)
        both = min(len(ids), len(coming))
        for entry in range(both):
            highest = max(highest, coming[entry])
            bring(table, coming[entry])
            g = push * values[entry] if valued else push
            change_row(rule, table, ids[entry], g, lr, decay, b, c)
        for entry in range(both, len(ids)):
            g = push * values[entry] if valued else push
            change_row(rule, table, ids[entry], g, lr, decay, b, c)
        highest = bring_rest(table, coming, both, highest)
    return loss + math.log(product), tilt, highest


# A loop for each, so that nothing is left in it that asks which rule it is; for the most used ones
# another of what is most often asked of them.


@compiled
def _sgd(table, lr, a, b, c, ids_at, values_at, counts, labels, bias, scale):  # type: ignore[no-untyped-def]
    if a == 0 and not len(values_at):
        return _descend(
            SGD, True, table, lr, a, b, c, ids_at, values_at, counts, labels, bias, scale
        )
    return _descend(SGD, False, table, lr, a, b, c, ids_at, values_at, counts, labels, bias, scale)


@compiled
def _adagrad(table, lr, a, b, c, ids_at, values_at, counts, labels, bias, scale):  # type: ignore[no-untyped-def]
    if a == 0 and not len(values_at):
        return _descend(
            ADAGRAD, True, table, lr, a, b, c, ids_at, values_at, counts, labels, bias, scale
        )
    return _descend(
        ADAGRAD, False, table, lr, a, b, c, ids_at, values_at, counts, labels, bias, scale
    )


@compiled
def _ftrl(table, lr, a, b, c, ids_at, values_at, counts, labels, bias, scale):  # type: ignore[no-untyped-def]
    return _descend(FTRL, False, table, lr, a, b, c, ids_at, values_at, counts, labels, bias, scale)


@compiled
def _adam(table, lr, a, b, c, ids_at, values_at, counts, labels, bias, scale):  # type: ignore[no-untyped-def]
    return _descend(ADAM, False, table, lr, a, b, c, ids_at, values_at, counts, labels, bias, scale)


DESCENDING = (_sgd, _adagrad, _ftrl, _adam)  # by rule
