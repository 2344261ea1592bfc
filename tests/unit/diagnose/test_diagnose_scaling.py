"""Speedup and efficiency, with intervals that mean something."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.diagnose.scaling import (
    efficiency,
    more_than_added,
    speedup,
    strong_speedup,
    weak_speedup,
)

rates = st.floats(1e-3, 1e9)
errors = st.floats(0, 0.5)


def rate(value: float | None, error: float | None = 0.01) -> dict[str, Any]:
    if value is None or error is None:
        return {"samples_per_second": value, "low": None, "high": None}
    return {
        "samples_per_second": value,
        "low": value * (1 - error),
        "high": value * (1 + error),
    }


@given(many=rates, one=rates, error=errors, other=errors)
def test_turning_the_ratio_round_turns_the_interval_round(
    many: float, one: float, error: float, other: float
) -> None:
    there = speedup(rate(many, error), rate(one, other))
    back = speedup(rate(one, other), rate(many, error))
    assert there.low <= there.value <= there.high
    assert there.value * back.value == pytest.approx(1)
    assert there.low * back.high == pytest.approx(1)


def test_errors_add_as_squares() -> None:
    found = speedup(rate(200, 0.03), rate(100, 0.04))
    assert found.value == 2
    assert found.high == pytest.approx(2 * math.exp(0.05))


def test_the_interval_covers_the_truth() -> None:
    rng = np.random.default_rng(5)
    covered, tries, error = 0, 1000, 0.05
    for _ in range(tries):
        many, one = (true * (1 + error / 1.96 * rng.standard_normal()) for true in (180, 100))
        found = speedup(rate(many, error), rate(one, error))
        covered += found.low <= 1.8 <= found.high
    assert 0.92 <= covered / tries <= 0.98


def test_efficiency_is_speedup_a_worker() -> None:
    gain = speedup(rate(300), rate(100))
    share = efficiency(gain, 4)
    assert (share.value, share.low, share.high) == (gain.value / 4, gain.low / 4, gain.high / 4)


def test_an_unknown_interval_claims_nothing() -> None:
    found = speedup(rate(200, None), rate(100))
    assert (found.value, found.low, found.high) == (2, 0, math.inf)


@pytest.mark.parametrize(("many", "one"), [(None, 100), (100, None), (0, 100), (100, 0)])
def test_an_unknown_rate_has_no_ratio(many: float | None, one: float | None) -> None:
    found = speedup(rate(many), rate(one))
    assert math.isnan(found.value)
    assert (found.low, found.high) == (0, math.inf)


@given(one=rates, workers=st.integers(1, 1000))
def test_perfect_scaling_is_n_times_strong_or_weak(one: float, workers: int) -> None:
    assert strong_speedup(one, one / workers) == pytest.approx(workers)
    assert weak_speedup(one, one, workers) == pytest.approx(workers)
    assert efficiency(weak_speedup(one, one, workers), workers) == pytest.approx(1)


@given(one=rates, many=rates, growth=st.floats(1, 1000))
def test_weak_is_the_ratio_of_what_was_done_in_a_second(
    one: float, many: float, growth: float
) -> None:
    assert weak_speedup(one, many, growth) == pytest.approx((growth / many) / (1 / one))
    assert weak_speedup(one, many, 1) == pytest.approx(strong_speedup(one, many))


def test_a_gain_above_what_was_added_is_named() -> None:
    assert more_than_added({1: 1, 2: 1.9, 4: 3.7, 8: 6.0}) == []
    assert more_than_added({5: 2.16, 1: 1.0, 6: 4.03}) == [(5, 6)]
    assert more_than_added({1: 1, 2: 2.07}) == [(1, 2)]
    assert more_than_added({1: 1, 2: 2.07}, slack=0.05) == []
