"""How fast each core is: the same short kernel, bound to one core after the other, in turns.

A core's speed is by the time it really had, not by the clock on the wall: other work that had the
core meanwhile makes it busy, not slow, and is told by itself.
"""

from __future__ import annotations

import os
import statistics
import time
from typing import NamedTuple

import numpy as np

from paceline.diagnose.doctor.equality import compare
from paceline.diagnose.doctor.facts import CORES, Equality
from paceline.doctor.asked import Asked
from paceline.measure.cores import my_cores

ROUNDS = 12
BURSTS = 3  # of which the fastest counts
NUMBERS = 4096  # and their exponentials fit the first cache
SHORTEST = 0.002  # seconds of a burst


class Burst(NamedTuple):
    speed: float  # exponentials a second
    taken: float  # the share of the time that the core was somebody else's


def measure(asked: Asked, seconds: float) -> tuple[Equality, ...]:
    cores = my_cores()
    length = max(SHORTEST, seconds / (ROUNDS * BURSTS * len(cores)))
    rounds: list[list[float]] = []
    taken: list[list[float]] = []
    try:
        for round_ in range(ROUNDS):
            found = {}
            for i in range(len(cores)):  # each is first in its turn
                core = cores[(i + round_) % len(cores)]
                os.sched_setaffinity(0, {core})
                found[core] = [_burst(length) for _ in range(BURSTS)]
            rounds.append([max(burst.speed for burst in found[core]) for core in cores])
            taken.append([statistics.mean(b.taken for b in found[core]) for core in cores])
    finally:
        os.sched_setaffinity(0, cores)
    return (
        compare(
            CORES,
            "exponentials/s",
            [f"core {core}" for core in cores],
            rounds,
            taken=[statistics.mean(column) for column in zip(*taken, strict=True)],
        ),
    )


def _burst(seconds: float) -> Burst:
    x = np.linspace(-1, 1, NUMBERS, dtype=np.float32)
    y = np.empty_like(x)
    np.exp(x, out=y)  # what is new to this core is brought to it
    done, began, had = 0, time.perf_counter(), time.thread_time()
    while time.perf_counter() - began < seconds:
        for _ in range(20):
            np.exp(x, out=y)
        done += 20
    had = time.thread_time() - had
    wall = time.perf_counter() - began
    return Burst(done * NUMBERS / max(had, 1e-9), max(0.0, 1 - had / wall))
