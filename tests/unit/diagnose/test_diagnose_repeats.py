"""Intervals from few repeats hold as often as they say, and a bootstrap's do not."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.diagnose.repeats import (
    _rank,
    difference,
    differs,
    level,
    ratio,
    repeats_needed,
    unpaired,
)
from paceline.measure.spread import Spread

TIMES = 1500

positive = st.lists(st.floats(0.01, 1e6), min_size=1, max_size=12)


@given(positive, st.floats(0.01, 100))
def test_the_value_lies_within_and_all_scales_with_the_unit(
    values: list[float], unit: float
) -> None:
    found, other = level(values), level([value * unit for value in values])
    assert other.value == pytest.approx(found.value * unit)
    if len(values) == 1:
        assert (found.low, found.high) == (None, None)
    else:
        assert found.low is not None
        assert found.high is not None
        assert found.low <= found.value * (1 + 1e-9)
        assert found.value <= found.high * (1 + 1e-9)


@given(st.lists(st.tuples(st.floats(0.1, 10), st.floats(0.1, 10)), min_size=2, max_size=12))
def test_a_ratio_turned_round_is_one_over_it(pairs: list[tuple[float, float]]) -> None:
    a, b = map(list, zip(*pairs, strict=True))
    there, back = ratio(a, b), ratio(b, a)
    assert there.low is not None
    assert there.high is not None
    assert back.value == pytest.approx(1 / there.value)
    assert back.low == pytest.approx(1 / there.high)
    assert differs(there) == differs(back)


@given(st.lists(st.floats(0.5, 2), min_size=2, max_size=9), st.floats(0.1, 10))
def test_what_all_of_a_block_share_does_not_count(noise: list[float], times: float) -> None:
    found = ratio([times * each for each in noise], noise)
    assert found.value == pytest.approx(times)
    assert found.low == pytest.approx(times)
    assert differs(found, same=2 * times) is True


def test_ranks_are_those_of_the_tables() -> None:
    """Of Wilcoxon's signed-rank test, two-sided 5 %: one less than k is still significant."""
    assert [_rank(n) - 1 for n in (6, 7, 8, 9, 10, 12, 15, 20)] == [0, 2, 3, 5, 8, 13, 25, 52]
    assert _rank(61) == pytest.approx(_rank(60), rel=0.05)


def normal(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.normal(0, 0.02, n)


def spoilt(rng: np.random.Generator, n: int) -> np.ndarray:
    """One run of ten meets something else on the machine, and takes up to half as long again."""
    hit = rng.random(n) < 0.1
    return rng.normal(0, 0.01, n) - hit * rng.uniform(0.1, 0.5, n)


def skewed(rng: np.random.Generator, n: int) -> np.ndarray:
    return -rng.exponential(0.03, n)


def false_alarms(noise: Callable[..., np.ndarray], repeats: int) -> float:
    """How often two cells that do the same are called different; each block has noise of its own
    that both share."""
    rng = np.random.default_rng(repeats)
    wrong = 0
    for _ in range(TIMES):
        shared = rng.normal(0, 0.1, repeats)
        a, b = (np.exp(shared + noise(rng, repeats)) for _ in range(2))
        wrong += bool(differs(ratio(list(a), list(b))))
    return wrong / TIMES


@pytest.mark.parametrize("noise", [normal, spoilt, skewed])
@pytest.mark.parametrize("repeats", [2, 3, 5, 6, 8, 12])
def test_the_same_is_rarely_called_different(
    noise: Callable[..., np.ndarray], repeats: int
) -> None:
    assert false_alarms(noise, repeats) < 0.05 + 3 * math.sqrt(0.05 * 0.95 / TIMES)


def test_a_bootstrap_of_three_repeats_says_far_too_often_that_there_is_a_difference() -> None:
    """Over repeats, and over the steps within: steps agree, runs do not."""
    rng = np.random.default_rng(1)
    wrong = 0
    for _ in range(300):
        runs = rng.normal(0, 0.02, (3, 1)) + rng.normal(0, 0.05, (3, 50))
        chosen = rng.integers(0, 3, (400, 3))
        steps = rng.integers(0, 50, (400, 3, 50))
        means = np.median(runs[chosen[..., None], steps].mean(axis=2), axis=1)
        low, high = np.quantile(means, [0.025, 0.975])
        wrong += not low <= 0 <= high
    assert wrong / 300 > 0.15


@pytest.mark.parametrize("repeats", [6, 8, 10])
def test_five_percent_is_found_with_as_many_repeats_as_it_says(repeats: int) -> None:
    """With the noise for which so many are needed, about four of five are found."""
    rng = np.random.default_rng(repeats)
    freedom = {6: 2.5706, 8: 2.3646, 10: 2.2622}[repeats]
    spread = math.log(1.05) * math.sqrt(repeats) / (freedom + 0.8416)
    found = 0
    for _ in range(TIMES):
        a = np.exp(rng.normal(0, spread / math.sqrt(2), repeats))
        b = np.exp(rng.normal(-math.log(1.05), spread / math.sqrt(2), repeats))
        found += bool(differs(ratio(list(b), list(a))))
    assert 0.68 < found / TIMES < 0.92


def test_repeats_needed_grow_with_the_square_of_the_noise() -> None:
    quiet = [1.00, 1.01, 0.99, 1.00]
    loud = [1.0, 1.04, 0.96, 1.0]
    same = [1.0] * 4
    few, many = repeats_needed(quiet, same, 0.05), repeats_needed(loud, same, 0.05)
    assert few is not None
    assert many is not None
    assert 2 <= few <= 4 < many < 20
    assert repeats_needed([1.0], [1.0], 0.05) is None
    assert repeats_needed([1.0, 1e9], [1.0, 1.0], 0.05) is None


def test_repeats_that_were_not_made_in_turns_are_held_apart_by_their_own_spread() -> None:
    assert differs(unpaired([1.0, 1.01, 0.99], [2.0, 2.02, 1.98])) is True
    assert differs(unpaired([1.0, 1.3, 0.8], [1.1, 1.4, 0.9])) is False
    assert differs(unpaired([1.0], [2.0, 2.1])) is None
    assert unpaired([2.0, 2.0], [1.0, 1.0]) == Spread(value=2.0, low=2.0, high=2.0, repeats=2)


def test_a_difference_of_blocks() -> None:
    found = difference([0.98, 0.97, 0.99], [0.97, 0.96, 0.98])
    assert found.value == pytest.approx(0.01)
    assert differs(found, same=0.0) is True
