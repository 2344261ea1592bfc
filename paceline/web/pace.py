"""How often something that takes time may be done, so that it takes no more than a share of it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SHARE = 0.002  # of all cores that this process may use
SOONEST = 1.0  # seconds


class Pace:
    """Whoever watches a run takes cores from it: what took long is done again after long."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._due = float("-inf")
        self._share = SHARE * len(os.sched_getaffinity(0))

    @property
    def due(self) -> bool:
        return self._clock() >= self._due

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Around what is done."""
        begin = time.thread_time()
        try:
            yield
        finally:
            took = time.thread_time() - begin
            self._due = self._clock() + max(SOONEST, took / self._share)
