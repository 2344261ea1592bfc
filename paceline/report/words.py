"""Numbers as a person reads them. An unknown number is a dash, never a zero."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Protocol

Summary = Mapping[str, Any]  # the object that `paceline run --json` prints

NONE = "–"


class Interval(Protocol):
    """A measured value with the bounds it lies between."""

    @property
    def value(self) -> float: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...


def number(value: float | None, digits: int = 0) -> str:
    """`41,230`, `7.4`"""
    return NONE if value is None else f"{value:,.{digits}f}"


def percent(fraction: float | None, digits: int = 2) -> str:
    """`92.31` of 0.9231; the sign stands in the table's header."""
    return NONE if fraction is None else f"{100 * fraction:.{digits}f}"


def short(value: float | None) -> str:
    """`3.00 M`: four characters of a large number, for narrow tables."""
    if value is None:
        return NONE
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(value) >= size:
            scaled = value / size
            return f"{scaled:.{2 if scaled < 10 else 1 if scaled < 100 else 0}f} {unit}"
    return f"{value:.0f}"


def between(low: float | None, high: float | None, digits: int = 0) -> str:
    """`40,900 – 41,600`"""
    if low is None or high is None:
        return NONE
    return f"{low:,.{digits}f} – {high:,.{digits}f}"


def times(ratio: Interval) -> str:
    """`1.42x (1.35–1.50)`, without bounds where they are not known."""
    return _bounded(ratio, "{:.2f}", "x")


def share(ratio: Interval) -> str:
    """`47 (45–50)` of 0.47; the sign stands in the table's header."""
    return _bounded(ratio, "{:.0%}", "").replace("%", "")


def _bounded(ratio: Interval, form: str, unit: str) -> str:
    if math.isnan(ratio.value):
        return NONE
    told = form.format(ratio.value) + unit
    if math.isinf(ratio.high):
        return told
    return f"{told} ({form.format(ratio.low)}–{form.format(ratio.high)})"


def many(count: int, thing: str) -> str:
    """`1 server`, `3 workers`"""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def rate(throughput: Mapping[str, Any]) -> str:
    """`41,230 samples/s (40,900 – 41,600)`"""
    if not throughput.get("samples_per_second"):  # too short, or a script that did not count them
        return "samples/s not known"
    told = f"{number(throughput['samples_per_second'])} samples/s"
    spread = between(throughput.get("low"), throughput.get("high"))
    return told if spread == NONE else f"{told} ({spread})"


def duration(seconds: float | None) -> str:
    """`7.4 s`, `3 min 05 s`, `2 h 10 min`"""
    if seconds is None:
        return NONE
    if seconds < 99.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 100:
        return f"{minutes} min {rest:02} s"
    return f"{minutes // 60} h {minutes % 60:02} min"
