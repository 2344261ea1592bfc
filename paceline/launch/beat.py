"""When the supervisor looks at a run by itself: at full seconds and even parts of them.

Workers tell then too. Each time the supervisor wakes a worker loses its core for a while, so it
does all there is to do once it is awake, and waits a little for whoever wakes it.
"""

from __future__ import annotations

import time

LATE = 0.02  # seconds; workers with longer steps do not wake it in time


class Beat:
    def __init__(self, every: float) -> None:
        self._every = every
        self._next = 0.0

    def due(self) -> float:
        """Seconds until it has to be awake."""
        return max(0.0, self._next + LATE - time.monotonic())

    def here(self) -> bool:
        """Whether it is time; then the next is another. Those that were missed are over."""
        now = time.monotonic()
        if now < self._next:
            return False
        self._next = (now // self._every + 1) * self._every
        return True
