"""Scores as they come in: parts of one scoring by several workers, added up to one."""

from __future__ import annotations

from typing import Any

from paceline.measure.ranking import RANKS, quality
from paceline.types import Score


class ScoreBook:
    """Workers that hold the same parameters score a part of the test samples each."""

    def __init__(self) -> None:
        self._parts: dict[tuple[bool, int], dict[str, dict[str, Any]]] = {}

    def add(self, role: str, message: dict[str, Any]) -> Score | None:
        """The whole score, once every test sample is in it."""
        if message["count"] == message["total"]:
            return _whole(role, [message])
        # Workers of one scoring may have taken different numbers of steps.
        key = (message["final"], -1 if message["final"] else message["epoch"])
        parts = self._parts.setdefault(key, {})
        parts[role] = message  # a worker that is started again may score its part again
        if sum(part["count"] for part in parts.values()) < message["total"]:
            return None
        return _whole("", [*self._parts.pop(key).values()])


def _whole(role: str, parts: list[dict[str, Any]]) -> Score:
    count = sum(part["count"] for part in parts)
    names = {name for part in parts for name in part["sums"]}
    return Score(
        time=max(part["time"] for part in parts),
        role=role,
        step=max(part["step"] for part in parts),
        epoch=max(part["epoch"] for part in parts),
        final=parts[0]["final"],
        values=_values({name: _mean(name, parts, max(1, count)) for name in sorted(names)}),
        count=count,
    )


def _mean(name: str, parts: list[dict[str, Any]], count: int) -> Any:
    """Over all samples; of a metric that has many numbers, of each."""
    found = [part["sums"][name] for part in parts if name in part["sums"]]
    if isinstance(found[0], list):
        return [sum(column) / count for column in zip(*found, strict=True)]
    return sum(found) / count


def _values(means: dict[str, Any]) -> dict[str, float]:
    """What is told: numbers as they are, and what a histogram of scores says."""
    found = {name: mean for name, mean in means.items() if not isinstance(mean, list)}
    if isinstance(ranks := means.get(RANKS), list):
        found |= quality(ranks)
    return found
