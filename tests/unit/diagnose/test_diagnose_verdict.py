"""The verdict names what limits a run, and who is waited for."""

from __future__ import annotations

import json

import numpy as np
import pytest

from paceline.diagnose.straggler import find_straggler
from paceline.diagnose.verdict import PHASE_WORDS, Parts, verdict
from paceline.store.steps import STEP, Steps
from paceline.types import PHASES


def phases(**seconds: float) -> dict[str, float]:
    return dict.fromkeys(PHASES, 0.0) | seconds


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


def test_compute_says_what_would_not_help() -> None:
    workers = {f"worker-{i}": phases(compute=9.1, exchange=0.9) for i in range(2)}
    found = verdict(Parts(phases=workers, cores=2))
    assert found["bottleneck"] == "compute"
    assert found["sentence"] == (
        "compute: workers spend 91 % of their time in forward and backward; "
        "more cores would help, another exchange would not."
    )
    assert found["evidence"]["shares"]["compute"] == pytest.approx(0.91)
    assert found["advice"]


@pytest.mark.parametrize("phase", PHASES)
def test_the_largest_share_is_the_bottleneck(phase: str) -> None:
    found = verdict(Parts(phases={"worker-0": phases(**{phase: 6.0})}))
    assert found["bottleneck"] == phase
    assert found["sentence"].startswith(f"{phase}: the worker spends 100 % of its time ")
    json.dumps(found, allow_nan=False)


def test_every_phase_has_words() -> None:
    assert tuple(PHASE_WORDS) == PHASES


def test_waiting_names_the_straggler() -> None:
    late = find_straggler(rounds({"worker-0": 0, "worker-1": 0, "worker-2": 0.5}))
    workers = {f"worker-{i}": phases(wait=6, compute=4) for i in range(3)}
    found = verdict(Parts(phases=workers, cores=8, straggler=late))
    assert "behind worker-2 which arrives last in 100 % of rounds" in found["sentence"]
    assert found["evidence"]["straggler"]["role"] == "worker-2"
    assert "worker-2" in found["advice"][0]


def test_more_roles_than_cores_is_cores() -> None:
    workers = {f"worker-{i}": phases(compute=1) for i in range(2)}
    parts = Parts(phases=workers, servers=1, cores=2, cores_used=1.93)
    found = verdict(parts)
    assert found["sentence"] == (
        "cores: 2 workers and 1 server take turns on 2 cores, of which 1.9 are busy; "
        "more cores or fewer workers would help, another exchange would not."
    )
    assert found["advice"][0] == "try --workers 1"


def test_roles_that_leave_cores_idle_are_not_short_of_them() -> None:
    workers = {f"worker-{i}": phases(exchange=1) for i in range(4)}
    assert verdict(Parts(phases=workers, cores=2, cores_used=0.9))["bottleneck"] == "exchange"
    assert verdict(Parts(phases=workers, cores=2))["bottleneck"] == "cores"
    assert verdict(Parts(phases=workers))["bottleneck"] == "exchange"


def test_nothing_recorded_is_said() -> None:
    for nothing in ({}, {"worker-0": phases()}):
        found = verdict(Parts(phases=nothing))
        assert found["bottleneck"] == "unknown"
        assert found["advice"] == []


def test_straggler_is_who_arrives_last() -> None:
    found = find_straggler(rounds({"worker-0": 0, "worker-1": 0.3}))
    assert found is not None
    assert (found.role, found.share, found.rounds) == ("worker-1", 1.0, 100)
    assert found.late_seconds == pytest.approx(0.3, abs=0.03)


def test_chance_makes_no_straggler() -> None:
    assert find_straggler(rounds({f"worker-{i}": 0 for i in range(4)})) is None


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
