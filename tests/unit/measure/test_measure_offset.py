"""Offsets are right within the error that they tell, whatever the network does."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.measure.offset import Offset, aligned, best, clock_id, offset

delay = st.floats(0, 0.5)
trips = st.lists(st.tuples(delay, delay), min_size=1)


@given(apart=st.floats(-1e6, 1e6), trips=trips)
def test_the_truth_lies_within_the_error(apart: float, trips: list[tuple[float, float]]) -> None:
    found, now = [], 10.0  # of the role's clock
    for out, back in trips:
        found.append(offset(now, now + out + apart, now + out + back))
        now += out + back
    for each in (*found, best(found)):
        assert abs(each.seconds - apart) <= each.error + 1e-6
    assert best(found).error == pytest.approx(min(sum(trip) for trip in trips) / 2, abs=1e-9)


@given(apart=st.floats(-1e3, 1e3), drift=st.floats(-1e-3, 1e-3))
def test_a_drift_is_followed_between_two_estimates(apart: float, drift: float) -> None:
    offsets = [Offset(at, apart + drift * at, 0.0) for at in (0.0, 60.0, 120.0)]
    times = np.linspace(0, 120, 50)
    assert aligned(times, offsets) == pytest.approx(times + apart + drift * times)
    assert aligned(-5.0, offsets) == pytest.approx(apart - 5.0)
    assert aligned(200.0, offsets) == pytest.approx(200.0 + apart + drift * 120)


def test_slow_exchanges_do_not_bend_time() -> None:
    """Each is off by no more than it says; the one quick exchange decides for all."""
    offsets = [Offset(0.0, 2.02, 0.03), Offset(5.0, 2.0, 0.0001), Offset(10.0, 1.96, 0.05)]
    times = np.linspace(0, 10, 50)
    assert np.diff(aligned(times, offsets)) == pytest.approx(np.diff(times), rel=0.001)
    assert aligned(times, offsets) == pytest.approx(times + 2.0, abs=0.003)


def test_a_clock_that_was_set_is_followed() -> None:
    offsets = [Offset(0.0, 2.0, 0.001), Offset(10.0, 50.0, 0.001)]
    assert aligned(np.array([0.0, 10.0]), offsets) == pytest.approx([2.0, 60.0])


def test_without_offsets_it_is_the_same_clock() -> None:
    assert aligned(3.25, []) == 3.25
    assert clock_id() == clock_id()
