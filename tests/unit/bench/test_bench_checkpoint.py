"""What bench.checkpoint reads from a run's records."""

from __future__ import annotations

import numpy as np
import pytest

from bench.checkpoint import EVERY, amid, costs
from paceline.store.steps import STEP


def test_a_cost_is_what_steps_around_a_checkpoint_take_longer() -> None:
    took = np.full(200, 0.1)
    took[99] += 0.3  # ends at 10.3 s, when one was committed
    rows = np.zeros(200, dtype=STEP)
    rows["time"] = np.cumsum(took)
    assert costs(rows, [10.3]) == [pytest.approx(0.3 / EVERY)]


def test_one_at_a_runs_begin_or_end_is_left_out() -> None:
    rows = np.zeros(200, dtype=STEP)
    rows["time"] = np.arange(1, 201) / 10
    assert amid([rows, rows[:150]], [2.0, 10.0, 14.0, 19.5]) == [10.0]
    assert costs(rows, [10.0]) == [pytest.approx(0.0, abs=1e-9)]
