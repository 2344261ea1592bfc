"""A median's interval holds what it promises, whatever the repeats are distributed like."""

from __future__ import annotations

import numpy as np
import pytest

from paceline.measure.spread import paired, percentile, spread


def test_few_repeats_have_no_interval() -> None:
    found = spread([3.0, 1.0, 2.0, 5.0, 4.0])
    assert (found.value, found.low, found.high, found.repeats) == (3.0, None, None, 5)
    assert found.relative is None


def test_six_repeats_lie_between_their_ends() -> None:
    found = spread([6, 5, 4, 3, 2, 1])
    assert (found.value, found.low, found.high) == (3.5, 1, 6)
    assert found.relative == pytest.approx(2.5 / 3.5)


def test_one_spoilt_repeat_of_nine_widens_nothing() -> None:
    found = spread([1.0, 1.01, 0.99, 1.0, 1.02, 0.98, 1.0, 1.01, 17.0])
    assert found.high is not None
    assert found.high <= 1.02


@pytest.mark.parametrize("repeats", [6, 9, 12, 40, 101, 400])
def test_nineteen_of_twenty_intervals_hold_the_median(repeats: int) -> None:
    rng = np.random.default_rng(repeats)
    held = 0
    for values in rng.exponential(size=(1000, repeats)):  # as lopsided as durations are
        found = spread(values.tolist())
        assert found.low is not None
        assert found.high is not None
        held += found.low <= np.log(2) <= found.high
    assert held >= 935


def test_very_many_repeats_take_no_time() -> None:
    found = spread(range(200_001))
    assert found.value == 100_000
    assert found.low is not None
    assert 99_000 < found.low < 100_000


def test_ratios_are_taken_turn_by_turn() -> None:
    """The machine was twice as slow in every other turn; the ratio never was."""
    under = [1.0, 2.0, 1.0, 2.0, 1.0, 2.0]
    found = paired([3.0 * value for value in under], under)
    assert (found.value, found.low, found.high) == (3.0, 3.0, 3.0)


def test_percentile() -> None:
    assert percentile(list(range(1, 101)), 0.99) == 99
    assert percentile([7.0], 0.99) == 7.0
