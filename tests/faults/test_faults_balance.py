"""kill -9 of a worker whose share is by speed: the others take it, and it gets one again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from faults_tools import ALL, harm, kill, task

import paceline
from paceline.store.steps import read_steps

pytestmark = [pytest.mark.parallel, pytest.mark.timeout(60, method="signal")]

BATCH, SAMPLES, EPOCHS = 10, 400, 6


@pytest.mark.parametrize("role", ["worker-0", "worker-1"])
def test_a_killed_worker_gets_a_share_again(role: str, runs: Path) -> None:
    crew = ALL["ps-sync-tcp"]
    whole = BATCH * crew["workers"]
    fields = {"epochs": EPOCHS, "lr": float(whole), "evaluate": "never", "batch": BATCH}
    with harm(runs, kill(role), role):
        run = paceline.fit(task("Counting"), out=runs, balance=True, **fields, **crew)
    assert run.status == "done"
    told = [(event["role"], event["kind"]) for event in run.summary["events"]]
    assert (role, "back") in told
    steps = {
        f"worker-{w}": read_steps(run.folder.steps_path(f"worker-{w}"))
        for w in range(crew["workers"])
    }
    rounds = EPOCHS * SAMPLES // whole
    dealt = np.zeros(rounds + 1, dtype=int)
    for taken in steps.values():
        np.add.at(dealt, taken["version"].astype(int), taken["samples"].astype(int))
    assert dealt.max() == whole
    # Rounds that closed without it lack what it had; what it did not live to record, too.
    assert (dealt[1:] == whole).sum() >= rounds - 4
    assert steps[role]["samples"][-1] >= 1
