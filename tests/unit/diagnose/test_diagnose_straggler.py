"""Who is waited for, by when each arrives."""

from __future__ import annotations

import numpy as np
import pytest

from paceline.diagnose.straggler import find_straggler
from paceline.store.steps import STEP, Steps


def arriving(*stamps: float, first: int = 0) -> Steps:
    rows = np.zeros(len(stamps), dtype=STEP)
    rows["step"] = np.arange(first, first + len(stamps))
    rows["arrival"] = stamps
    return rows


def rounds(lateness: dict[str, float], count: int = 100, jitter: float = 0.1) -> dict[str, Steps]:
    rng = np.random.default_rng(0)
    return {
        role: arriving(*(np.arange(count) + late + jitter * rng.random(count)))
        for role, late in lateness.items()
    }


def test_straggler_is_who_arrives_last() -> None:
    found = find_straggler(rounds({"worker-0": 0, "worker-1": 0.3}))
    assert found is not None
    assert (found.role, found.share, found.rounds) == ("worker-1", 1.0, 100)
    assert found.late_seconds == pytest.approx(0.3, abs=0.03)


def test_chance_makes_no_straggler() -> None:
    assert find_straggler(rounds({f"worker-{i}": 0 for i in range(4)})) is None


def test_two_that_are_equally_slow_are_both_named() -> None:
    """Mixed hardware: each of them is last in half of the rounds."""
    found = find_straggler(rounds({"worker-0": 0, "worker-1": 0.3, "worker-2": 0, "worker-3": 0.3}))
    assert found is not None
    assert sorted(found.roles) == ["worker-1", "worker-3"]
    assert found.share == 1.0
    assert found.late_seconds == pytest.approx(0.3, abs=0.05)


def test_most_are_no_stragglers() -> None:
    """Where one is quick, the others are the crew."""
    late = {"worker-0": 0, "worker-1": 0.3, "worker-2": 0.3, "worker-3": 0.3}
    assert find_straggler(rounds(late)) is None


def test_one_that_is_slow_does_not_take_another_along() -> None:
    found = find_straggler(rounds({f"worker-{n}": 0.07 * (n == 2) for n in range(4)}))
    assert found is None or found.roles == ("worker-2",)


def test_no_straggler_without_rounds_in_common() -> None:
    alone = {"worker-0": arriving(1, 2, 3)}
    apart = alone | {"worker-1": arriving(1, 2, 3, first=10)}
    unstamped = {"worker-0": arriving(0, 0), "worker-1": arriving(0, 0)}
    assert [find_straggler(each) for each in (alone, apart, unstamped, {})] == [None] * 4


def test_a_step_taken_again_counts_as_the_last_time() -> None:
    again = np.concatenate([arriving(1.0, 2.0, 3.0), arriving(5.0, 6.0, first=1)])
    found = find_straggler({"worker-0": arriving(0.9, 2.5, 3.5), "worker-1": again})
    assert found is not None
    assert (found.role, found.rounds, found.share) == ("worker-1", 3, 1.0)
