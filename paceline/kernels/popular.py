"""Rows that many samples have, of which a worker keeps its own for a while.

Where workers change the same memory, a row that both want all the time goes from one core's cache
to the other's and back, and each waits for it. Of the few rows that most entries are about, each
worker has its own in a small table, and after some samples adds up what became of them:

    near ← table;   near ← rule(near, gradients of some samples);   table ← table + (near − before)

A row's place in the small table follows from its number, and `tags` says whose place it is. Rules
whose weights and state are sums of what gradients bring can be added up so; of FTRL weights follow
from state, and are found anew.
"""

from __future__ import annotations

import numpy as np

from paceline.kernels.jit import compiled, inlined
from paceline.kernels.places import array_at
from paceline.kernels.rowrules import FTRL, changed
from paceline.kernels.sparse import SPREAD

FREE = np.uint32(0xFFFFFFFF)  # no row has that number


@inlined
def shift_of(places):  # type: ignore[no-untyped-def]
    """What `place_of` is told of so many places, a power of two from 2 on."""
    shift = np.uint64(64)
    while places > 1:
        places >>= 1
        shift -= np.uint64(1)
    return shift


@inlined
def place_of(row, shift):  # type: ignore[no-untyped-def]
    return (np.uint64(row) * SPREAD) >> shift


@compiled
def elect(ids_at, counts, least, tags, votes, chosen):  # type: ignore[no-untyped-def]
    """Give each place to the row that most entries are about; the places that are then in use.

    Every entry is a vote for its row, and one against whichever other row has its place. A row
    needs `least` more votes for it than against it.
    """
    tags[:] = FREE
    votes[:] = 0
    shift = shift_of(len(tags))
    for sample in range(len(counts)):
        ids = array_at(ids_at[sample], counts[sample], np.uint32)
        for entry in range(len(ids)):
            at = place_of(ids[entry], shift)
            if tags[at] == ids[entry]:
                votes[at] += 1
            elif votes[at] == 0:
                tags[at] = ids[entry]
                votes[at] = 1
            else:
                votes[at] -= 1
    count = 0
    for at in range(len(tags)):
        if votes[at] >= least:
            chosen[count] = at
            count += 1
        else:
            tags[at] = FREE
    return count


@compiled
def borrow(table, tags, chosen, near, before):  # type: ignore[no-untyped-def]
    """Take rows to their places, and remember how they were."""
    for one in range(len(chosen)):
        at = np.uint64(chosen[one])
        for column in range(table.shape[1]):
            near[at, column] = before[at, column] = table[np.uint64(tags[at]), column]


@compiled
def give_back(table, tags, chosen, near, before, rule, lr, a, b, c):  # type: ignore[no-untyped-def]
    """Add to rows of the table what has become of their places."""
    for one in range(len(chosen)):
        at = np.uint64(chosen[one])
        row = np.uint64(tags[at])
        for column in range(table.shape[1]):
            table[row, column] += near[at, column] - before[at, column]
        if rule == FTRL:
            none = np.float32(0.0)
            w, s, r = table[row, 0], table[row, 1], table[row, 2]
            table[row, 0] = changed(rule, w, s, r, none, lr, a, b, c)[0]
