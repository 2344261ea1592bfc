"""Logistic regression sample by sample: a loop finds a sample's gradient and applies it at once.

Where a row is, in the table or in the small one of `popular.py`, is found once, while samples
before are at work, and it is brought near; it is still at hand when it is changed.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from paceline.kernels.ahead import LINE, bring_to_change, bring_to_read
from paceline.kernels.jit import compiled, inlined, pasted
from paceline.kernels.places import array_at
from paceline.kernels.popular import place_of, shift_of
from paceline.kernels.rowrules import ADAGRAD, ADAM, FTRL, SGD, changed

SAMPLES_AHEAD = 3  # whose rows are brought near before they are used
ENTRIES_AHEAD = 8  # samples whose entries are
HELD = 4  # samples whose rows are known: a power of two, and more than those ahead
NOTHING = np.float32(0.0)
LANES = 16  # numbers that a processor takes at once, at most
ONE, TWO, THREE = np.uint64(1), np.uint64(2), np.uint64(3)
FACTORS = 256  # of at most 2 each: their product is a number still


@inlined
def change_row(rule, row, g, lr, a, b, c):  # type: ignore[no-untyped-def]
    """Apply a gradient to a row [weight and state]."""
    none = np.float32(0.0)
    s = row[1] if rule != SGD else none
    r = row[2] if rule in (FTRL, ADAM) else none
    w, s, r = changed(rule, row[0], s, r, g, lr, a, b, c)
    row[0] = w
    if rule != SGD:
        row[1] = s
    if rule in (FTRL, ADAM):
        row[2] = r


@inlined
def entries_of(ids_at, counts, sample):  # type: ignore[no-untyped-def]
    """The rows that a sample has entries of; none of one after the last."""
    there = sample < len(counts)
    return array_at(ids_at[sample] if there else 0, counts[sample] if there else 0, np.uint32)


@inlined
def bring_entries(entries_at, counts, sample):  # type: ignore[no-untyped-def]
    """Have near what a sample has, if there is one: nobody else knows where it is."""
    if sample < len(counts):
        for line in range(0, 4 * counts[sample], LINE):
            bring_to_read(entries_at[sample] + line)


@inlined
def width_of(rule):  # type: ignore[no-untyped-def]
    """Numbers of a row: its weight and state."""
    return 1 if rule == SGD else 2 if rule == ADAGRAD else 3


@inlined
def found(rule, table, near, tags, shift, row):  # type: ignore[no-untyped-def]
    """The address of a row, which is brought near.

    Both that it could be are cheap to tell, as their distances are known when this is compiled; a
    jump to one of them would be guessed wrong too often.
    """
    place, distance = place_of(row, shift), 4 * width_of(rule)
    here = near.ctypes.data + np.int64(place) * distance
    there = table.ctypes.data + np.int64(row) * distance
    at = here if tags[place] == row else there
    bring_to_change(at)
    return at


@inlined
def find_steps(steps, count, push, lr, b):  # type: ignore[no-untyped-def]
    """Of Adagrad, where there is the state of each row: what is taken off its weight."""
    square, rate = push * push, lr * push
    for entry in range((count + LANES - 1) & -LANES):
        steps[entry] = rate / (math.sqrt(steps[entry] + square) + b)


@pasted
def change(rule, at_once, ways, of, steps, entry, g, lr, a, b, c):  # type: ignore[no-untyped-def]
    """Apply a gradient to the row of an entry; with `at_once` its step is known."""
    at = np.uint64(entry)
    row = array_at(ways[of, at], width_of(rule), np.float32)
    if at_once:  # both numbers are read and written together
        weight, state = row[0] - steps[at], row[1] + g * g
        row[0], row[1] = weight, state
    else:
        change_row(rule, row, g, lr, a, b, c)


@inlined
def use(way, width, at_once, steps, entry):  # type: ignore[no-untyped-def]
    """The weight of a row; with `at_once` its state goes to `steps`."""
    row = array_at(way, width, np.float32)
    if at_once:
        steps[entry] = row[1]
    return row[0]


@pasted
def score(ways, of, width, at_once, steps, bias, count, valued, values):  # type: ignore[no-untyped-def]
    """Of a sample: the sum of its rows' weights, each times its value where there are values."""
    z, z1, z2, z3 = bias, NOTHING, NOTHING, NOTHING
    fours = 0 if valued else count & ~3
    for entry in range(0, fours, 4):  # four sums, none of which waits for another
        at = np.uint64(entry)
        z += use(ways[of, at], width, at_once, steps, at)
        z1 += use(ways[of, at + ONE], width, at_once, steps, at + ONE)
        z2 += use(ways[of, at + TWO], width, at_once, steps, at + TWO)
        z3 += use(ways[of, at + THREE], width, at_once, steps, at + THREE)
    for entry in range(fours, count):
        at = np.uint64(entry)
        weight = use(ways[of, at], width, at_once, steps, at)
        z += weight * values[entry] if valued else weight
    return (z + z1) + (z2 + z3)


@pasted
def _descend(  # type: ignore[no-untyped-def]
    rule,
    plain,
    table,
    near,
    tags,
    ways,
    steps,
    lr,
    a,
    b,
    c,
    ids_at,
    values_at,
    counts,
    labels,
    bias,
    scale,
):
    """Change the weights of each sample at once: the loss, the bias's gradient, the highest row.

    The table is [rows, weight and state], side by side, and `near` has the same of those rows that
    `tags` names. `ways`, [HELD, most entries of a sample], is where it remembers addresses.
    Samples' entries are where they are; it ends before one that has a row beyond the table. With
    `plain` all entries are one, and weights do not decay. Then a sample's `steps` are found at once
    for Adagrad, as many together as the processor takes: a row that it has twice changes twice by
    the same. There is room in `steps` for LANES more.

    The loss is Σ log(1 + e^−|z|) + max(z, 0) − yz. Of some samples at a time, log of the product.
    """
    loss, tilt, highest = 0.0, 0.0, np.uint32(0)
    product, factors = 1.0, 0
    valued, decay = not plain and len(values_at) > 0, np.float32(0) if plain else a
    at_once = plain and rule == ADAGRAD
    width, shift = width_of(rule), shift_of(len(tags))
    for sample in range(-SAMPLES_AHEAD, len(labels)):
        if highest >= len(table):
            break
        coming, both = entries_of(ids_at, counts, sample + SAMPLES_AHEAD), 0
        bring_entries(ids_at, counts, sample + ENTRIES_AHEAD)
        if valued:
            bring_entries(values_at, counts, sample + ENTRIES_AHEAD)
        to, of = np.uint64((sample + SAMPLES_AHEAD) % HELD), np.uint64(sample % HELD)
        if sample >= 0:
            count = counts[sample]
            values = array_at(values_at[sample] if valued else 0, count, np.float32)
            z = score(ways, of, width, at_once, steps, bias, count, valued, values)
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
            if at_once:
                find_steps(steps, count, push, lr, b)
            both = min(count, len(coming))
            for entry in range(both):  # what waits for memory beside what waits for arithmetic
                highest = max(highest, coming[entry])
                ways[to, np.uint64(entry)] = found(rule, table, near, tags, shift, coming[entry])
                g = push * values[entry] if valued else push
                change(rule, at_once, ways, of, steps, entry, g, lr, decay, b, c)
            for entry in range(both, count):
                g = push * values[entry] if valued else push
                change(rule, at_once, ways, of, steps, entry, g, lr, decay, b, c)
        for entry in range(both, len(coming)):
            highest = max(highest, coming[entry])
            ways[to, np.uint64(entry)] = found(rule, table, near, tags, shift, coming[entry])
    return loss + math.log(product), tilt, highest


def _loop_of(rule: int) -> Any:
    """A loop for one rule, so that nothing is left in it that asks which rule it is; for what is
    most often asked of the most used ones another."""

    @compiled
    def loop(  # type: ignore[no-untyped-def]
        table, near, tags, ways, steps, lr, a, b, c, ids_at, values_at, counts, labels, bias, scale
    ):
        if rule in (SGD, ADAGRAD) and a == 0 and not len(values_at):
            return _descend(
                rule,
                True,
                table,
                near,
                tags,
                ways,
                steps,
                lr,
                a,
                b,
                c,
                ids_at,
                values_at,
                counts,
                labels,
                bias,
                scale,
            )
        return _descend(
            rule,
            False,
            table,
            near,
            tags,
            ways,
            steps,
            lr,
            a,
            b,
            c,
            ids_at,
            values_at,
            counts,
            labels,
            bias,
            scale,
        )

    return loop


DESCENDING = tuple(_loop_of(rule) for rule in (SGD, ADAGRAD, FTRL, ADAM))
