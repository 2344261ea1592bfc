"""A chart, without a library: a figure is what plotly's script takes, as plain JSON values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paceline.report.layout import Column

Figure = dict[str, Any]  # {"data": [...], "layout": {...}}
DIGITS = 5  # that numbers in a figure keep: more than anybody sees


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """`says` is what the chart shows, in words, for whoever cannot see it; `table` its numbers.

    `views` are figures by name, of which one is shown at a time: most charts have a single one.
    `note` tells what was left out or put together so that it can be drawn.
    """

    name: str
    title: str
    says: str
    views: Mapping[str, Figure]
    table: Sequence[Column] = ()
    note: str = ""

    @property
    def figure(self) -> Figure:
        """The first view."""
        return next(iter(self.views.values()))


def plain(values: Iterable[float | None]) -> list[float | None]:
    """Numbers as a figure holds them: short, and null for what is no number."""
    return [None if v is None or not math.isfinite(v) else _short(v) for v in values]


def _short(value: float) -> float:
    short = float(f"{value:.{DIGITS}g}")
    if math.isinf(short):  # the largest there are, rounded up
        return value
    return int(short) if short.is_integer() and abs(short) < 1e15 else short
