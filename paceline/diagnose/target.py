"""When a run was good enough: seconds and samples until a score reached a target.

Between two scores the curve is taken to be a straight line, in seconds and in samples. With the
last score before the target (t₀, v₀) and the first that reaches it (t₁, v₁):

    t = t₀ + (t₁ − t₀) · (target − v₀) / (v₁ − v₀)

Nobody looked in between, so it is only certain that it was after t₀ and not after t₁; before the
first score nothing is known, and a target that the first one reaches counts as reached there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import ge, le


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """A score, and what had been spent until it."""

    seconds: float
    samples: float
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """When the target was met for the first time. `stayed`: no later score fell short of it.

    `earliest` and `latest` are the seconds of the scores between which it happened.
    """

    seconds: float
    samples: float
    earliest: float
    latest: float
    stayed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NotReached:
    """What was spent without meeting the target, and the best score; NaN if there was none."""

    seconds: float
    samples: float
    best: float


def to_target(
    curve: Sequence[Scored], target: float, *, falling: bool = False
) -> Reached | NotReached:
    """From scores in the order of their seconds. `falling`: less is better, as with a loss.

    Scores that are no numbers, as of a run that diverged, reach nothing.
    """
    good: Callable[[float, float], bool] = le if falling else ge
    if any(late.seconds < early.seconds for early, late in pairwise(curve)):
        raise ValueError("scores must come in the order of their seconds")
    known = [score for score in curve if math.isfinite(score.value)]
    first = next((i for i, score in enumerate(known) if good(score.value, target)), None)
    if first is None:
        values = [score.value for score in known]
        best = (min if falling else max)(values, default=math.nan)
        last = curve[-1] if curve else Scored(seconds=0, samples=0, value=math.nan)
        return NotReached(seconds=last.seconds, samples=last.samples, best=best)
    after = known[first]
    before = known[first - 1] if first else None
    part = (target - before.value) / (after.value - before.value) if before else 1.0
    start = before or after
    return Reached(
        seconds=start.seconds + part * (after.seconds - start.seconds),
        samples=start.samples + part * (after.samples - start.samples),
        earliest=before.seconds if before else 0.0,
        latest=after.seconds,
        stayed=all(good(score.value, target) for score in curve[curve.index(after) :]),
    )
