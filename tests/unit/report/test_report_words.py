from __future__ import annotations

import math
from dataclasses import dataclass

import pytest

from paceline.report.words import (
    between,
    duration,
    many,
    number,
    percent,
    rate,
    share,
    short,
    times,
)


@dataclass(frozen=True)
class Bounds:
    value: float
    low: float
    high: float


def test_what_is_unknown_is_a_dash_everywhere() -> None:
    assert {number(None), percent(None), short(None), between(None, 1.0), duration(None)} == {"–"}
    assert times(Bounds(math.nan, 0.0, math.inf)) == "–"


@pytest.mark.parametrize(
    ("value", "told"),
    [
        *((0, "0"), (999, "999"), (1_000, "1.00 k"), (41_230, "41.2 k")),
        *((233_400, "233 k"), (3_000_000, "3.00 M"), (12_345_678_901, "12.3 G")),
    ],
)
def test_short_numbers(value: float, told: str) -> None:
    assert short(value) == told


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        *((0.04, "0.0 s"), (99.94, "99.9 s"), (99.96, "1 min 40 s")),
        *((185, "3 min 05 s"), (7_800, "2 h 10 min")),
    ],
)
def test_durations(seconds: float, told: str) -> None:
    assert duration(seconds) == told


def test_ratios_carry_their_interval_where_there_is_one() -> None:
    assert times(Bounds(1.42, 1.35, 1.5)) == "1.42x (1.35–1.50)"
    assert share(Bounds(0.47, 0.45, 0.5)) == "47 (45–50)"
    assert times(Bounds(1.42, 0.0, math.inf)) == "1.42x"


def test_rates_carry_their_interval_where_there_is_one() -> None:
    assert rate({"samples_per_second": 41230.4, "low": 40900.0, "high": 41600.0}) == (
        "41,230 samples/s (40,900 – 41,600)"
    )
    assert rate({"samples_per_second": 41230.4, "low": None, "high": None}) == "41,230 samples/s"
    assert rate({"samples_per_second": None}) == "samples/s not known"


def test_one_is_singular() -> None:
    assert (many(1, "server"), many(1200, "step")) == ("1 server", "1,200 steps")
