"""The order of samples that are taken in runs: some that lie side by side stay together."""

from __future__ import annotations

import numpy as np

from paceline.kernels.jit import compiled


@compiled
def mix(chunks, chunk, run, samples, key, begins):  # type: ignore[no-untyped-def]
    """Where each run of these chunks begins, in an order that follows from the key alone; but one
    that the end of all samples cuts short comes last.

    Numbers are those of SplitMix64 (Steele, Lea and Flood, 2014); by them the runs are shuffled as
    by Fisher and Yates.
    """
    place = 0
    for number in chunks:
        for first in range(number * chunk, min((number + 1) * chunk, samples), run):
            begins[place] = first
            place += 1
    for last in range(len(begins) - 1, 0, -1):
        key += np.uint64(0x9E3779B97F4A7C15)
        drawn = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        drawn = (drawn ^ (drawn >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        other = ((drawn >> np.uint64(32)) * np.uint64(last + 1)) >> np.uint64(32)
        begins[last], begins[other] = begins[other], begins[last]
    if samples % run:
        for place in range(len(begins)):
            if begins[place] + run > samples:
                begins[place], begins[-1] = begins[-1], begins[place]


@compiled
def spread(begins, run, first, rows):  # type: ignore[no-untyped-def]
    """The samples of those runs, from the `first` of them all on."""
    at, within = first // run, first % run
    for place in range(len(rows)):
        rows[place] = begins[at] + within
        within += 1
        if within == run:
            at, within = at + 1, 0
