"""Where the time of a loop goes: it is at one thing at a time, so all of them sum to its time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

GRAIN = 0.01  # seconds a row is about, at least


class Stopwatch:
    """`at` says what is done from now on. Every `GRAIN` seconds `tell` is told when the row began
    and what was spent on each name since."""

    def __init__(
        self,
        names: Sequence[str],
        tell: Callable[[float, list[float]], None] = lambda began, seconds: None,
    ) -> None:
        self._doing = names[-1]
        self.seconds = dict.fromkeys(names, 0.0)
        self._tell = tell
        self._told = self.seconds.copy()
        self._since = self._began = time.monotonic()

    def at(self, name: str) -> str:
        """From now on it does this; what it did before, to go back to."""
        now = time.monotonic()
        before, self._doing = self._doing, name
        self.seconds[before] += now - self._since
        self._since = now
        return before

    def row(self, least: float = GRAIN) -> None:
        """Tell a row that ended when `at` was last called, if it is long enough."""
        if self._since - self._began >= least:
            told = [s - self._told[name] for name, s in self.seconds.items()]
            self._tell(self._began, told)
            self._began, self._told = self._since, self.seconds.copy()

    def reset(self) -> None:
        """From nothing again, in another role; what was spent so far is told."""
        self.at(self._doing)
        self.row(0.0)
        self.seconds = dict.fromkeys(self.seconds, 0.0)
        self._told = self.seconds.copy()
