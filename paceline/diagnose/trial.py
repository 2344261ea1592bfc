"""Trying advice: the specs of two short runs, with the advice and without, and what came of them.

Runs take turns, since a machine has moods; a gain is that of two runs of the same turn. What was
wanted is kept as it is, save for what makes a short run of it: its length, and faults done to it at
a moment of their own.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from paceline.diagnose.finding import Gain
from paceline.errors import RequestError
from paceline.spec import RunSpec
from paceline.spec.inject import STEADY, injection

FEWEST = 12  # steps of a worker: some for warm-up, some to take a rate from


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """An advice that a program can follow: of which cause, the how many-th, and what it says."""

    cause: str
    number: int
    text: str
    changes: Mapping[str, Any]
    predicted: Gain


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """Samples a second of each turn, without the advice and with it."""

    asked: Asked
    before: tuple[float, ...]
    after: tuple[float, ...]

    @property
    def gains(self) -> list[float]:
        return [b / a for a, b in zip(self.before, self.after, strict=True)]

    @property
    def gain(self) -> float:
        """The median of all turns."""
        return statistics.median(self.gains)

    @property
    def inside(self) -> bool:
        """Whether it came as predicted."""
        return self.asked.predicted.low <= self.gain <= self.asked.predicted.high

    @property
    def helped(self) -> bool:
        return self.gain > 1.0


def choose(verdict: Mapping[str, Any], number: int | None = None) -> Asked:
    """The first advice that a program can follow, or the one of that number, of the bottleneck.

    RequestError with what to do by hand where there is none.
    """
    found = verdict["findings"][:1]
    advice = found[0]["advice"] if found else []
    able = [n for n, each in enumerate(advice, start=1) if each["changes"]]
    if number is None and not able:
        by_hand = "; ".join(each["text"] for each in advice)
        told = f"do it by hand: {by_hand}" if by_hand else "there is no advice"
        raise RequestError(
            f"'{verdict['bottleneck']}' has no advice that a program can follow; {told}."
        )
    number = number or able[0]
    if number not in able:
        those = ", ".join(map(str, able))
        raise RequestError(
            f"--advice {number}: "
            + (f"a program can follow these: {those}." if able else "no program can follow it.")
        )
    chosen = advice[number - 1]
    return Asked(
        cause=found[0]["cause"],
        number=number,
        text=chosen["text"],
        changes=chosen["changes"],
        predicted=Gain(**chosen["gain"]),
    )


def short_specs(
    spec: RunSpec, batch: int | None, asked: Asked, steps_a_second: float, seconds: float
) -> tuple[RunSpec, RunSpec]:
    """Of a spec as it was asked for, and the batch it had: a run of about so many seconds, and one
    with the advice.

    Both take about as long: with the advice as many samples more as it should bring.
    """
    steady = tuple(
        text for text in spec.inject if injection(text).kind in STEADY and "@" not in text
    )
    steps = max(FEWEST, round(steps_a_second * seconds))
    before = spec.with_(epochs=None, steps=steps, batch=batch, inject=steady, target_accuracy=None)
    low, high = asked.predicted
    more = (low * high) ** 0.5 * _samples(before) / _samples(before.with_(**asked.changes))
    after = before.with_(**{**asked.changes, "steps": max(FEWEST, round(steps * more))})
    return before, after


def _samples(spec: RunSpec) -> int:
    """Of a round of all workers."""
    return spec.step_samples * spec.workers


def as_object(tried: Tried) -> dict[str, Any]:
    """As `--json` tells it."""
    return {
        "cause": tried.asked.cause,
        "advice": tried.asked.text,
        "changes": dict(tried.asked.changes),
        "predicted": tried.asked.predicted._asdict(),
        "actual": {"value": tried.gain, "low": min(tried.gains), "high": max(tried.gains)},
        "inside": tried.inside,
        "samples_per_second": {"before": list(tried.before), "after": list(tried.after)},
    }


def sentence(tried: Tried) -> str:
    low, high = tried.asked.predicted
    came = f"{tried.gain:.2f}x ({min(tried.gains):.2f} to {max(tried.gains):.2f})"
    judged = "as predicted" if tried.inside else "more" if tried.gain > high else "less"
    than = "" if tried.inside else " than predicted"
    return f"{came}, {judged}{than}: {low:.2f}x to {high:.2f}x."


def spec_of(about: Mapping[str, Any]) -> RunSpec:
    """As it was asked for; RequestError where that is not all it takes to run it again."""
    if about.get("given", "spec") != "spec":
        raise RequestError(
            f"this run trained {'an object' if about['given'] == 'object' else 'a script'}, which "
            "its folder does not have: run it with the changed flags yourself."
        )
    return RunSpec(**about["spec"])
