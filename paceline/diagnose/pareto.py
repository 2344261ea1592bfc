"""Time against money: which choices are worth having, and which nobody should take.

A choice is beaten if another takes no longer and costs no more, and less of one of them. What is
not beaten is the front: on it, time can only be had for money. Where both were measured several
times in the same blocks, a choice is only beaten if that is beyond the noise: with R the ratio of
its seconds to the other's and c that of what a second costs, both R and c·R must be above 1 over
the whole interval of R.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from paceline.diagnose.repeats import ratio
from paceline.measure.spread import Spread


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """`seconds` are those it took, by block; `price_a_second` is that of all it needs."""

    name: str
    seconds: Mapping[Hashable, float]
    price_a_second: float

    @property
    def typical(self) -> float:
        ranked = sorted(self.seconds.values())
        half = len(ranked) // 2
        return ranked[half] if len(ranked) % 2 else (ranked[half - 1] + ranked[half]) / 2

    @property
    def money(self) -> float:
        return self.typical * self.price_a_second


def beaten(choices: Sequence[Choice]) -> dict[str, str]:
    """Those that nobody should take, each with the best that beats it: the cheapest of those."""
    found: dict[str, str] = {}
    for one in choices:
        better = [other for other in choices if other is not one and beats(other, one)]
        if better:
            found[one.name] = min(better, key=lambda c: (c.money, c.typical)).name
    return found


def beats(one: Choice, other: Choice) -> bool:
    """Whether `one` is to be preferred, whatever time and money are worth."""
    slower = _times(other, one)
    dearer = other.price_a_second / one.price_a_second if one.price_a_second else 1.0
    low = slower.value if slower.low is None else slower.low
    if slower.low is None:  # nothing is known of noise: by the figures as they are
        return low >= 1 and low * dearer >= 1 and (low > 1 or low * dearer > 1)
    return low > 1 and low * dearer > 1


def _times(over: Choice, under: Choice) -> Spread:
    both = [block for block in over.seconds if block in under.seconds]
    if both:
        return ratio([over.seconds[b] for b in both], [under.seconds[b] for b in both])
    return Spread(value=over.typical / under.typical)
