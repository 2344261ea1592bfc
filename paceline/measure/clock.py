"""The clock of a run."""

from __future__ import annotations

import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Clock:
    """Seconds since the run began: `t0` is the supervisor's `time.monotonic()` at that moment.

    Linux counts that clock from boot, so all processes of one host agree on it.
    """

    t0: float

    def now(self) -> float:
        return time.monotonic() - self.t0
