"""Figures as they were printed: each stands for all that rounds to it.

`26.4` may have been anything from 26.35 to 26.45, so what is computed from it is an interval too.
A figure follows from others if the two intervals meet.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product


@dataclass(frozen=True, slots=True)
class Printed:
    """A positive decimal number, digit for digit."""

    text: str

    @property
    def value(self) -> float:
        return float(self.text)

    @property
    def digits(self) -> int:
        """How many stand behind the point."""
        return len(self.text.partition(".")[2])

    @property
    def low(self) -> float:
        return self.value - self._half

    @property
    def high(self) -> float:
        return self.value + self._half

    @property
    def _half(self) -> float:
        return float(f"0.5e-{self.digits}")

    def follows(self, formula: Callable[..., float], *given: Printed) -> bool:
        """Whether it is what a formula makes of others, whatever was cut off from them.

        The formula must go one way in each of its arguments, so that its ends are at theirs.
        """
        corners = product(*((one.low, one.high) for one in given))
        found = [formula(*corner) for corner in corners]
        least = 1e-9 * self.value  # what floats lose
        return min(found) <= self.high + least and max(found) >= self.low - least
