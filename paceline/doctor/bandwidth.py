"""Memory bandwidth: copying what no cache can hold, by one core and by all at once, in turns."""

from __future__ import annotations

import os
import threading
import time

import numpy as np
import numpy.typing as npt

from paceline.diagnose.doctor.facts import Bandwidth
from paceline.doctor.asked import Asked
from paceline.doctor.processor import caches, last_level
from paceline.measure.cores import my_cores
from paceline.measure.process import free_memory
from paceline.measure.spread import spread

ROUNDS = 8
LEAST = 32 << 20  # bytes a core copies
TIMES = 4  # as much as the last caches hold, over all cores
SHARE = 0.25  # of the memory that is free, at most

Bytes = npt.NDArray[np.uint8]


def measure(asked: Asked, seconds: float) -> Bandwidth:
    cores = my_cores()
    size = _size(len(cores))
    crew = [Copier(core, size) for core in cores]
    turn = seconds / (2 * ROUNDS)
    one, all_ = [], []
    for _ in range(ROUNDS):
        one.append(_rate(crew[:1], turn))
        all_.append(_rate(crew, turn))
    return Bandwidth(one=spread(one), all=spread(all_), cores=len(cores), size=size)


def _size(cores: int) -> int:
    wanted = max(LEAST, TIMES * last_level(caches()) // cores)
    return max(1 << 20, min(wanted, int(SHARE * free_memory()) // (2 * cores)))


class Copier:
    """One core, with memory that it has touched first: so it is near, where that differs."""

    def __init__(self, core: int, size: int) -> None:
        self._core = core
        self._from: Bytes
        self._to: Bytes
        self.rate = 0.0
        _join([threading.Thread(target=self._touch, args=(size,))])

    def _touch(self, size: int) -> None:
        os.sched_setaffinity(0, {self._core})  # of this thread alone
        self._from, self._to = np.ones(size, np.uint8), np.ones(size, np.uint8)

    def copy(self, ready: threading.Barrier, seconds: float) -> None:
        """For so many seconds, from when all are ready: `rate` is bytes read and written."""
        os.sched_setaffinity(0, {self._core})
        ready.wait()
        done, began = 0, time.perf_counter()
        while (spent := time.perf_counter() - began) < seconds or not done:
            np.copyto(self._to, self._from)
            done += 1
        self.rate = 2 * done * self._from.nbytes / spent


def _rate(crew: list[Copier], seconds: float) -> float:
    ready = threading.Barrier(len(crew))
    _join([threading.Thread(target=one.copy, args=(ready, seconds)) for one in crew])
    return sum(one.rate for one in crew)


def _join(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
