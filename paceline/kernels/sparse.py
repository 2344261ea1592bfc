"""Compiled loops over the rows of sparse tables. They let go of Python's lock.

A batch touches few of a table's rows, and some of them many times. `localize` numbers those that
are touched from 0 on, so that everything after it works in arrays that fit the cache:

    entries ─localize─► rows touched, and for each entry which of them it is
    weights of those rows ─logistic─► loss, and gradients of those rows ─update─► the table

`update`, and what does all of it sample by sample, are in `rowrules.py`. Weights are [rows,
columns] and state is [rows, states, columns], of any strides: a row's may lie together.
"""

from __future__ import annotations

import math

import numpy as np

from paceline.kernels.ahead import bring
from paceline.kernels.jit import compiled, inlined

SPREAD = np.uint64(0x9E3779B97F4A7C15)  # 2⁶⁴ over the golden ratio: neighbours land far apart
FREE, CROWDED = -1, -1
HALF, LOW = 32, 0xFFFFFFFF
AHEAD = 24  # rows that are brought near before they are used
LINE = 16  # rows that are looked at together: a line of memory, where a row is one number


@compiled
def localize(ids, slots, rows, inverse):  # type: ignore[no-untyped-def]
    """Fill `rows` with each id once and `inverse` with which of them an entry is; how many rows.

    `slots` (all FREE, and left so) is an open hash table, a power of two long, of which at most
    half is filled; CROWDED if that is not enough. The shorter it is, the nearer it lies: it holds
    an id and its number side by side.
    """
    shift = np.uint64(64)
    places = len(slots)
    while places > 1:
        places >>= 1
        shift -= np.uint64(1)
    last, most, count = len(slots) - 1, len(slots) >> 1, 0
    for entry in range(len(ids)):
        id_ = np.int64(ids[entry])
        at = np.int64((np.uint64(id_) * SPREAD) >> shift)
        found = slots[at]
        while found != FREE and found >> HALF != id_:
            at = (at + 1) & last
            found = slots[at]
        if found == FREE:
            if count == most:
                slots[:] = FREE
                return CROWDED
            found = (id_ << HALF) | count
            slots[at] = found
            rows[count] = id_
            count += 1
        inverse[entry] = found & LOW
    if count * 8 > len(slots):
        slots[:] = FREE
    else:  # few: those alone
        for row in range(count):
            at = np.int64((np.uint64(rows[row]) * SPREAD) >> shift)
            while slots[at] != FREE:
                slots[at] = FREE
                at = (at + 1) & last
    return count


@inlined
def blamed(z, label):  # type: ignore[no-untyped-def]
    """The loss log(1 + eᶻ) − yz, and its derivative p − y, with p = 1 / (1 + e⁻ᶻ)."""
    small = math.exp(-abs(z))
    chance = (1.0 if z >= 0 else small) / (1.0 + small)
    return math.log1p(small) + max(z, 0.0) - label * z, chance - label


@compiled
def logistic(weights, inverse, offsets, values, labels, bias, scale, gradient):  # type: ignore[no-untyped-def]
    """Add `scale` times the gradient of the summed loss; that loss, and the bias's gradient."""
    loss, tilt = 0.0, 0.0
    valued = len(values) > 0
    for row in range(len(labels)):
        begin, end = offsets[row], offsets[row + 1]
        z = bias
        for entry in range(begin, end):
            weight = weights[np.uint32(inverse[entry])]
            z += weight * values[entry] if valued else weight
        more, blame = blamed(z, labels[row])
        loss += more
        push = np.float32(blame * scale)
        tilt += float(push)
        for entry in range(begin, end):
            gradient[np.uint32(inverse[entry])] += push * values[entry] if valued else push
    return loss, tilt


@compiled
def scores(weights, inverse, offsets, values, bias, out):  # type: ignore[no-untyped-def]
    """z of each row."""
    valued = len(values) > 0
    for row in range(len(out)):
        z = bias
        for entry in range(offsets[row], offsets[row + 1]):
            weight = weights[np.uint32(inverse[entry])]
            z += weight * values[entry] if valued else weight
        out[row] = z


@compiled
def take(table, rows, out):  # type: ignore[no-untyped-def]
    """out ← those rows of the table."""
    last = len(rows) - 1
    for row in range(len(rows)):
        bring(table, rows[min(row + AHEAD, last)])
        at = np.uint64(rows[row])
        for column in range(table.shape[1]):
            out[row, column] = table[at, column]


@compiled
def put(table, rows, values):  # type: ignore[no-untyped-def]
    """Those rows of the table ← values."""
    for row in range(len(rows)):
        for column in range(table.shape[1]):
            table[rows[row], column] = values[row, column]


@compiled
def note(weights, state, rows, ids, noted):  # type: ignore[no-untyped-def]
    """Remember these rows: their numbers, and in one line each all that they have."""
    columns, states, last = weights.shape[1], state.shape[1], len(rows) - 1
    for row in range(len(rows)):
        bring(weights, rows[min(row + AHEAD, last)])
        at = rows[row]
        ids[row] = at
        for column in range(columns):
            noted[row, column] = weights[at, column]
            for kept in range(states):
                noted[row, (1 + kept) * columns + column] = state[at, kept, column]


@compiled
def unnote(weights, state, ids, noted):  # type: ignore[no-untyped-def]
    """Have them again as they were."""
    columns, states = weights.shape[1], state.shape[1]
    for row in range(len(ids)):
        at = ids[row]
        for column in range(columns):
            weights[at, column] = noted[row, column]
            for kept in range(states):
                state[at, kept, column] = noted[row, (1 + kept) * columns + column]


@compiled
def striped(rows, values, stripes, ends, ids, out):  # type: ignore[no-untyped-def]
    """Rows and their values in order of stripe: stripe s has ends[s] to ends[s + 1]."""
    ends[:] = 0
    for row in range(len(rows)):
        ends[rows[row] % stripes + 1] += 1
    for stripe in range(stripes):
        ends[stripe + 1] += ends[stripe]
    to = ends[:stripes].copy()
    for row in range(len(rows)):
        stripe = rows[row] % stripes
        at = to[stripe]
        to[stripe] += 1
        ids[at] = rows[row]
        for column in range(values.shape[1]):
            out[at, column] = values[row, column]


@compiled
def used(weights, state, begin, end, stripe, stripes):  # type: ignore[no-untyped-def]
    """The rows of a stripe in a range that are not all zero: those anybody has touched."""
    found, count = np.empty(16, np.int64), 0
    for row in range(begin + (stripe - begin) % stripes, end, stripes):
        zero = True
        for column in range(weights.shape[1]):
            zero = zero and weights[row, column] == 0
            for kept in range(state.shape[1]):
                zero = zero and state[row, kept, column] == 0
        if not zero:
            found, count = _with(found, count, row)
    return found[:count]


@compiled
def used_together(words, width, begin, end, stripe, stripes):  # type: ignore[no-untyped-def]
    """`used`, of a table whose rows are so many words each, one after another.

    Of billions of rows few are touched: a line of memory that is nothing but zeros is passed over
    at once.
    """
    found, count = np.empty(16, np.int64), 0
    for first in range(begin, end, LINE):
        last = min(end, first + LINE)
        if not _any(words, first * width, last * width):
            continue
        for row in range(first + (stripe - first) % stripes, last, stripes):
            if _any(words, row * width, (row + 1) * width):
                found, count = _with(found, count, row)
    return found[:count]


@inlined
def _any(words, begin, end):  # type: ignore[no-untyped-def]
    """Whether one of them is not zero. Without a branch it is done many at a time."""
    bits = np.uint32(0)
    for at in range(begin, end):
        bits |= words[at]
    return bits != 0


@inlined
def _with(found, count, row):  # type: ignore[no-untyped-def]
    """One more, in twice the room where there is none."""
    if count == len(found):
        more = np.empty(2 * count, np.int64)
        more[:count] = found
        found = more
    found[count] = row
    return found, count + 1


@compiled
def encode(rows, out):  # type: ignore[no-untyped-def]
    """Rows in rising order as the gaps between them, seven bits a byte; how many bytes that is."""
    at, before = 0, np.int64(-1)
    for row in range(len(rows)):
        gap = rows[row] - before - 1
        before = rows[row]
        while gap >= 128:
            out[at] = (gap & 127) | 128
            gap >>= 7
            at += 1
        out[at] = gap
        at += 1
    return at


@compiled
def decode(data, most, out):  # type: ignore[no-untyped-def]
    """Fill `out` with rows below `most`; whether that is exactly what the bytes say."""
    at, before = 0, np.int64(-1)
    for row in range(len(out)):
        gap, shift = np.int64(0), 0
        while True:
            if at == len(data) or shift > 28:
                return False
            byte = np.int64(data[at])
            at += 1
            gap |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        before += gap + 1
        if before >= most:
            return False
        out[row] = before
    return at == len(data)
