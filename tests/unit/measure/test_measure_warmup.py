"""Warm-up is found where it is, and not where it is not."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from paceline.measure.warmup import warmup_steps

Series = npt.NDArray[np.float64]


def steady(count: int, seed: int) -> Series:
    return 0.01 * np.exp(0.1 * np.random.default_rng(seed).standard_normal(count))


@pytest.mark.parametrize(("count", "dropped"), [(0, 0), (1, 0), (2, 1), (5, 1), (9, 1)])
def test_few_steps_drop_only_the_first(count: int, dropped: int) -> None:
    assert warmup_steps(np.ones(count)) == dropped


def test_a_constant_series_drops_only_the_first() -> None:
    assert warmup_steps(np.full(500, 0.02)) == 1


@pytest.mark.parametrize("count", [100, 1000, 20_000])
def test_a_steady_series_keeps_almost_all(count: int) -> None:
    dropped = [warmup_steps(steady(count, seed)) for seed in range(40)]
    assert np.median(dropped) <= 0.01 * count
    assert np.mean(dropped) <= 0.05 * count


@pytest.mark.parametrize(("count", "ramp"), [(40, 8), (200, 20), (1000, 300), (20_000, 2000)])
@pytest.mark.parametrize("first", [2.0, 20.0])
def test_a_ramp_is_found(count: int, ramp: int, first: float) -> None:
    dropped = []
    for seed in range(20):
        series = steady(count, seed)
        series[:ramp] *= np.linspace(first, 1.3, ramp)
        dropped.append(warmup_steps(series))
    assert 0.8 * ramp <= np.median(dropped) <= 1.2 * ramp


def test_a_few_very_slow_first_steps_of_many_are_found() -> None:
    series = steady(100_000, 0)
    series[:3] = 2.0
    assert 3 <= warmup_steps(series) < 5000


def test_late_pauses_do_not_pass_for_warmup() -> None:
    dropped = []
    for seed in range(40):
        series = steady(400, seed)
        series[[60, 130, 199, 333]] *= 100
        dropped.append(warmup_steps(series))
    assert np.median(dropped) <= 5


def test_a_fast_start_is_warmup_too() -> None:
    series = steady(400, 0)
    series[:50] *= 0.4
    assert 45 <= warmup_steps(series) <= 60


@given(arrays.arrays(np.float32, st.integers(0, 300), elements=st.floats(0, 2.0**20, width=32)))
def test_never_more_than_a_third_and_never_raises(series: npt.NDArray[np.float32]) -> None:
    assert 0 <= warmup_steps(series) <= max(len(series) // 3, min(1, len(series) // 2))
