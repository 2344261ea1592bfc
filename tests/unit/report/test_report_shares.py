"""Each worker's part of the batch, from the steps it recorded."""

from __future__ import annotations

import numpy as np
import pytest

from paceline.report.shares import shares
from paceline.store.steps import STEP, Steps


def steps(samples: list[int], first: int = 1) -> Steps:
    taken = np.zeros(len(samples), dtype=STEP)
    taken["samples"] = samples
    taken["version"] = np.arange(first, first + len(samples))
    return taken


def test_mean_of_all_and_the_last_of_a_whole_batch() -> None:
    found = shares({"worker-0": steps([50, 60, 70, 9]), "worker-1": steps([50, 40, 30, 1])})
    assert found["worker-0"] == {"mean": pytest.approx(189 / 310), "last": 0.7}
    assert found["worker-1"] == {"mean": pytest.approx(121 / 310), "last": 0.3}


def test_rounds_that_a_worker_missed_are_not_mixed_up() -> None:
    found = shares({"worker-0": steps([50, 100, 80]), "worker-1": steps([20], first=3)})
    assert found["worker-0"]["last"] == 0.8
    assert found["worker-1"]["last"] == 0.2


def test_before_the_first_step_nobody_has_one() -> None:
    assert shares({}) == {}
    assert shares({"worker-0": steps([0])}) == {}
