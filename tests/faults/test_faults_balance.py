"""Where shares are by speed: whatever dies or is stopped, every sample is in somebody's share."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from faults_tools import ALL, harm, kill, task

import paceline
from paceline.store.steps import Steps, read_steps

pytestmark = [pytest.mark.parallel, pytest.mark.timeout(60, method="signal")]

BATCH, SAMPLES, EPOCHS, WORKERS = 10, 400, 6, 2
WHOLE = BATCH * WORKERS
SLOW = ("slow:worker-1x3",)


def train(runs: Path, crew: str, **more: Any) -> paceline.Run:
    """Every sample adds 1 to its number in every epoch, whoever's share it is in."""
    fields = {"epochs": EPOCHS, "lr": float(WHOLE), "evaluate": "never", "batch": BATCH}
    return paceline.fit(task("Counting"), out=runs, balance=True, **fields, **ALL[crew], **more)


def counted_once_an_epoch(run: paceline.Run) -> None:
    assert run.status == "done"
    seen = run.parameters()["seen"]
    torch.testing.assert_close(seen, torch.full_like(seen, EPOCHS), rtol=0, atol=1e-3)


def taken(run: paceline.Run) -> dict[str, Steps]:
    roles = [f"worker-{w}" for w in range(WORKERS)]
    return {role: read_steps(run.folder.steps_path(role)) for role in roles}


@pytest.mark.parametrize("role", ["worker-0", "worker-1"])
def test_a_killed_worker_gets_a_share_again(role: str, runs: Path) -> None:
    with harm(runs, kill(role), role):
        run = train(runs, "ps-sync-tcp")
    assert run.status == "done"
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
        run = train(runs, "ps-sync-tcp", inject=SLOW)
    assert ("server-0", "back") in [(e["role"], e["kind"]) for e in run.summary["events"]]
    counted_once_an_epoch(run)
    steps = taken(run)
    assert steps["worker-1"]["samples"].sum() < steps["worker-0"]["samples"].sum()


@pytest.mark.parametrize("crew", ["allreduce", "ps-sync-shm"])
def test_a_run_that_is_taken_up_deals_anew(crew: str, runs: Path) -> None:
    with harm(runs, lambda pids: os.kill(os.getpid(), signal.SIGINT)):
        run = train(runs, crew, inject=SLOW)
    assert run.status == "stopped"
    assert taken(run)["worker-1"]["samples"][-1] < BATCH
    counted_once_an_epoch(paceline.resume(run))
