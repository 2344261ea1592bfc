"""What a cause has to say of a run: what time it costs, by which numbers, and what to change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

Confidence = Literal["high", "medium", "low"]
LEVELS: tuple[Confidence, ...] = ("low", "medium", "high")


class Gain(NamedTuple):
    """How many times the samples a second there should be, between `low` and `high`."""

    low: float
    high: float


class Fact(NamedTuple):
    """A number, its unit, and where it comes from."""

    what: str
    value: float
    unit: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """`changes` are fields of the spec; where there are none it is for a person to do."""

    text: str
    gain: Gain
    changes: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """`share` is the part of the workers' time that would be gone if the cause were."""

    cause: str
    share: float
    sentence: str
    roles: tuple[str, ...] = ()
    facts: tuple[Fact, ...] = ()
    advice: tuple[Advice, ...] = ()
    confidence: Confidence = "high"
    why: str = ""  # so confident
    against: tuple[str, ...] = ()  # numbers that speak against it, in sentences


def lower(one: Confidence, other: Confidence) -> Confidence:
    return min(one, other, key=LEVELS.index)
