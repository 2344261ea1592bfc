"""A run that was resized is taken up with the workers and servers that it had when it was kept."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from faults_tools import ALL, alive, task
from scale_tools import beside, eventually

import paceline
from paceline.store.folder import RunFolder

pytestmark = [pytest.mark.parallel, pytest.mark.timeout(60, method="signal")]

EPOCHS, BATCH = 40, 10
CREWS: dict[str, dict[str, Any]] = {
    "ps-async-shm": {},
    "ps-async-tcp": {"servers": 2},
    "ssp-shm": {},
    "ps-sync-shm": {},
    "ps-sync-shm-large": {"task": task("Middle")},
    "ps-sync-tcp": {"servers": 2},
    "allreduce": {},
}


def train(runs: Path, crew: str) -> paceline.Run:
    """Every sample adds 1 to its number in every epoch, by whichever worker."""
    asked = ALL[crew.removesuffix("-large")] | {"workers": 2} | CREWS[crew]
    pooled = asked["strategy"] in ("ps-sync", "allreduce")
    fields = {"task": task("Counting"), "epochs": EPOCHS, "batch": BATCH, "threads": 1}
    fields |= {"lr": float(BATCH * (2 if pooled else 1)), "evaluate": "never"}
    return paceline.fit(out=runs, checkpoint_every=0.1, **(fields | asked))


def kept_by(folder: Path) -> set[str]:
    """The roles that have a part of the newest checkpoint."""
    found, _ = RunFolder(folder).checkpoints().last()
    return {part.role for part in found.parts} if found is not None else set()


def pid_of(folder: Path, role: str) -> int:
    roles = json.loads((folder / "roles.json").read_text())["roles"]
    return int(next(r["pid"] for r in roles if r["role"] == role))


STOPPED = ("ps-async-shm", "ps-sync-shm-large", "ps-sync-tcp")


@pytest.mark.matrix(1)
@pytest.mark.parametrize(
    ("crew", "last"), [*((crew, False) for crew in CREWS), *((crew, True) for crew in STOPPED)]
)
def test_it_goes_on_with_those_who_were_there(crew: str, last: bool, runs: Path) -> None:
    served = {"server-0", "server-1", "server-2"} if "servers" in CREWS[crew] else set()

    def act(folder: Path) -> None:
        paceline.scale(folder, workers=3, servers=3 if served else None)
        pid = pid_of(folder, "worker-0")
        os.kill(pid, signal.SIGTERM)
        eventually(lambda: not alive([pid]), 10)
        eventually(lambda: kept_by(folder) == {"worker-1", "worker-2"} | served, 10, "a checkpoint")
        os.kill(os.getpid(), signal.SIGINT)

    with beside(runs, act):
        run = train(runs, crew)
    assert run.status == "stopped"
    if not last:  # as if it had been killed before that one was whole
        max(run.dir.glob("checkpoints/*/manifest.json")).unlink()
    assert kept_by(run.dir) == {"worker-1", "worker-2"} | served
    resumed = paceline.resume(run)
    assert resumed.status == "done"
    apart = 400 if "task" in CREWS[crew] else 1
    seen = resumed.parameters()["seen"][::apart]
    torch.testing.assert_close(seen, torch.full_like(seen, EPOCHS), rtol=0, atol=1e-3)
