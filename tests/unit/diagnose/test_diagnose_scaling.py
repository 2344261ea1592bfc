"""Speedup and efficiency, with intervals that mean something."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.diagnose.scaling import efficiency, speedup

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
