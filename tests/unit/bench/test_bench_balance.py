"""What bench.balance reads from a run's records."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bench.balance import inside, own_speeds, recovered, speed
from paceline.store.steps import STEP, Steps


def steps(seconds: list[float], samples: int) -> Steps:
    """One after another from 0 on, all of it compute."""
    taken = np.zeros(len(seconds), dtype=STEP)
    taken["time"], taken["compute"], taken["samples"] = np.cumsum(seconds), seconds, samples
    return taken


def test_own_speeds_are_over_the_time_in_which_all_work() -> None:
    alone = own_speeds([steps([0.1] * 100, 64), steps([0.2] * 100, 64)])
    assert alone == pytest.approx([640, 320])


def test_speed_is_over_the_whole_run_with_its_first_steps() -> None:
    both = [steps([1.0, *[0.1] * 10], 80), steps([1.0, *[0.1] * 10], 40)]
    assert speed(both) == pytest.approx(120 * 11 / 2.0)


def test_recovered_counts_rounds_from_the_turn_on() -> None:
    worse = [*[0.1] * 50, *[0.3] * 7, *[0.1] * 50]
    both = [steps(worse, 60), steps(worse, 60)]
    assert recovered(both, 50, 1190.0) == 7
    assert recovered(both, 50, 1000.0) == 6  # nine of the next ten are quick, one is slow
    assert recovered(both, 50, 1300.0) == math.inf


def test_hindsight_is_all_of_the_sum_where_speeds_are_steady() -> None:
    """1,200 and 600 samples a second; a round of 90 takes a tenth where 50 would be enough."""
    uneven = [steps([0.1] * 20, 60), steps([0.1] * 20, 30)]
    for one in uneven:
        one["compute"] = one["wait"] = 0.05
    assert inside(uneven) == pytest.approx((0.5, 1.0))


def test_hindsight_is_less_where_they_are_not() -> None:
    odd, even = [0.1, 0.2] * 10, [0.2, 0.1] * 10
    reached, at_most = inside([steps(odd, 60), steps(even, 60)])
    assert at_most == pytest.approx(0.75)
    assert reached == pytest.approx(1.0)  # steps of unlike length that nobody waited for
