"""kill -9 where shares are by speed: the others take a worker's, and it gets one again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from faults_tools import ALL, harm, kill, task

import paceline
from paceline.store.steps import Steps, read_steps

pytestmark = [pytest.mark.parallel, pytest.mark.timeout(60, method="signal")]

BATCH, SAMPLES, EPOCHS = 10, 400, 6
CREW = ALL["ps-sync-tcp"]
WHOLE = BATCH * CREW["workers"]


def train(runs: Path, **more: Any) -> paceline.Run:
    """Every sample adds 1 to its number in every epoch, whoever's share it is in."""
    fields = {"epochs": EPOCHS, "lr": float(WHOLE), "evaluate": "never", "batch": BATCH}
    run = paceline.fit(task("Counting"), out=runs, balance=True, **fields, **CREW, **more)
    assert run.status == "done"
    return run


def taken(run: paceline.Run) -> dict[str, Steps]:
    roles = [f"worker-{w}" for w in range(CREW["workers"])]
    return {role: read_steps(run.folder.steps_path(role)) for role in roles}


@pytest.mark.parametrize("role", ["worker-0", "worker-1"])
def test_a_killed_worker_gets_a_share_again(role: str, runs: Path) -> None:
    with harm(runs, kill(role), role):
        run = train(runs)
    told = [(event["role"], event["kind"]) for event in run.summary["events"]]
    assert (role, "back") in told
    steps, rounds = taken(run), EPOCHS * SAMPLES // WHOLE
    dealt = np.zeros(rounds + 1, dtype=int)
    for own in steps.values():
        np.add.at(dealt, own["version"].astype(int), own["samples"].astype(int))
    assert dealt.max() == WHOLE
    # Rounds that closed without it lack what it had; what it did not live to record, too.
    assert (dealt[1:] == WHOLE).sum() >= rounds - 4
    assert steps[role]["samples"][-1] >= 1


def test_a_killed_server_comes_back_with_the_shares_it_had_told(runs: Path) -> None:
    """Were they others, two workers would train on the same samples, or nobody on some."""
    with harm(runs, kill("server-0"), "server-0"):
        run = train(runs, inject=("slow:worker-1x3",))
    assert ("server-0", "back") in [(e["role"], e["kind"]) for e in run.summary["events"]]
    seen = run.parameters()["seen"]
    torch.testing.assert_close(seen, torch.full_like(seen, EPOCHS), rtol=0, atol=1e-3)
    steps = taken(run)
    assert steps["worker-1"]["samples"].sum() < steps["worker-0"]["samples"].sum()
