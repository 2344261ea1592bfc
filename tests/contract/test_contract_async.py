"""`ps-async`: every push is applied exactly once, and how stale it was is recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from contract_tasks import Counting

import paceline

pytestmark = [pytest.mark.parallel, pytest.mark.timeout(60, method="signal")]


def workers_of(run: paceline.Run) -> list[dict[str, Any]]:
    return [role for role in run.roles if role["role"].startswith("worker-")]


def servers_of(run: paceline.Run) -> list[dict[str, Any]]:
    return [role for role in run.roles if role["role"].startswith("server-")]


@pytest.mark.matrix(3)
@pytest.mark.parametrize("workers", [2, 3, 4])
@pytest.mark.parametrize("servers", [1, 2, 3])
@pytest.mark.parametrize("transport", ["shm", "tcp"])
def test_count_and_sum_are_exact(transport: str, servers: int, workers: int, runs: Path) -> None:
    steps = 60
    run = paceline.fit(
        Counting(500),
        strategy="ps-async",
        workers=workers,
        servers=servers,
        transport=transport,
        steps=steps,
        lr=1.0,
        evaluate="end",
        out=runs,
    )
    pushes = steps * workers
    assert sum(role["steps"] for role in workers_of(run)) == pushes
    assert [role["steps"] for role in servers_of(run)] == [pushes] * servers
    assert torch.equal(run.parameters()["weights"], torch.full((1001,), float(pushes)))
    assert run.quality["updates"] == pushes


@pytest.mark.parametrize("transport", ["shm", "tcp"])
@pytest.mark.parametrize("servers", [1, 2])
def test_staleness_is_recorded(transport: str, servers: int, runs: Path) -> None:
    run = paceline.fit(
        Counting(4000),
        strategy="ps-async",
        workers=4,
        servers=servers,
        transport=transport,
        epochs=1,
        out=runs,
    )
    seen = 0
    for role in workers_of(run):
        staleness = role["staleness"]
        assert sum(staleness["histogram"].values()) == role["steps"]
        assert max(map(int, staleness["histogram"])) == staleness["max"]
        assert 0 <= staleness["mean"] <= staleness["max"]
        seen = max(seen, staleness["max"])
    # Four workers on any machine: somebody pushed while another computed.
    assert seen >= 1


def test_one_worker_is_never_stale(runs: Path) -> None:
    run = paceline.fit(
        Counting(100),
        strategy="ps-async",
        workers=1,
        servers=2,
        transport="tcp",
        epochs=1,
        out=runs,
    )
    assert workers_of(run)[0]["staleness"] == {"mean": 0.0, "max": 0, "histogram": {"0": 25}}


def test_a_server_counts_every_push_in_step_too(runs: Path) -> None:
    """With rate 1 and a gradient of −1, a round of any number of workers adds one."""
    for transport in ("shm", "tcp"):
        run = paceline.fit(
            Counting(100),
            strategy="ps-sync",
            workers=3,
            servers=2,
            transport=transport,
            epochs=2,
            lr=1.0,
            out=runs,
        )
        rounds = 2 * 9  # 100 samples in rounds of 12
        assert torch.equal(run.parameters()["weights"], torch.full((1001,), float(rounds)))
