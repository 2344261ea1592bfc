"""Strategies that nobody waits in, at their edges: hogwild, one worker alone, damped staleness."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from contract_tasks import Net

import paceline
from paceline.errors import SpecError

pytestmark = [pytest.mark.parallel, pytest.mark.timeout(60, method="signal")]


@pytest.mark.parametrize("rule", ["sgd", "adam"])
@pytest.mark.parametrize("workers", [2, 4])
def test_hogwild_trains(workers: int, rule: str, runs: Path) -> None:
    run = paceline.fit(
        Net(803),
        strategy="hogwild",
        workers=workers,
        batch=8,
        epochs=6,
        lr=0.3 if rule == "sgd" else 0.01,
        optimizer=rule,
        out=runs,
    )
    assert run.summary["spec"]["transport"] == "shm"
    accuracy = run.quality["accuracy"]
    assert accuracy is not None
    assert accuracy > 0.8
    workers_ = [role for role in run.roles if role["role"].startswith("worker-")]
    assert sum(role["samples"] for role in workers_) == 6 * 803
    assert all(role["staleness"] is not None for role in workers_)


def test_hogwild_is_for_one_host() -> None:
    with pytest.raises(SpecError, match=r"--transport tcp: .*'hogwild' goes over shm only\."):
        paceline.fit(Net(), strategy="hogwild", workers=2, transport="tcp")


@pytest.mark.matrix(3)
@pytest.mark.parametrize(
    "how",
    [
        {"strategy": "hogwild"},
        {"strategy": "hogwild", "damp_stale": True},
        {"strategy": "ssp", "transport": "shm", "bound": 1},
        {"strategy": "ssp", "transport": "tcp", "bound": 1},
        {"strategy": "ssp", "transport": "shm", "damp_stale": True},
        {"strategy": "ps-async", "transport": "tcp", "damp_stale": True},
    ],
    ids=lambda how: "-".join(map(str, how.values())),
)
def test_one_worker_is_single(how: dict[str, Any], runs: Path) -> None:
    """To the bit: alone there is nothing to lose and nothing is stale."""
    both = [{"strategy": "single"}, how]
    one, other = (
        paceline.fit(
            Net(), batch=16, epochs=2, optimizer="adam", evaluate="never", out=runs, **crew
        ).parameters()
        for crew in both
    )
    assert all(torch.equal(value, other[name]) for name, value in one.items())


@pytest.mark.parametrize("strategy", ["ps-async", "ssp", "hogwild"])
def test_damped_it_still_trains(strategy: str, runs: Path) -> None:
    run = paceline.fit(
        Net(803), strategy=strategy, workers=4, damp_stale=True, batch=8, epochs=6, lr=0.5, out=runs
    )
    accuracy = run.quality["accuracy"]
    assert accuracy is not None
    assert accuracy > 0.75
