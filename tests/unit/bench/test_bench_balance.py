"""What bench.balance reads from a run's records."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bench.balance import own_speeds, recovered, speed
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
