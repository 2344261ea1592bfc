"""kill -9 of workers in step over shared memory: rounds close without them, and they come back."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from faults_tools import ALL, Watch, alive, harm, task
from torch import Tensor

import paceline
from paceline.errors import RoleDied
from paceline.store.steps import read_steps

pytestmark = [pytest.mark.parallel, pytest.mark.timeout(60, method="signal")]

BATCH, SAMPLES, EPOCHS, EVERY = 10, 400, 6, 4
CLOSES_WITHIN = 2.0  # seconds that a round may wait for one that died

# Small models are applied by all; of larger ones each worker serves a shard; of the largest the
# part of the gradient that is served at home is in nobody else's reach.
CREWS: dict[str, dict[str, Any]] = {
    "small": {**ALL["ps-sync-shm"], "task": "Counting"},
    "middle": {**ALL["ps-sync-shm"], "task": "Middle"},
    "large": {**ALL["ps-sync-shm"], "task": "Wide"},
    "local-sgd": {**ALL["local-sgd-shm"], "task": "Counting"},
    "backup": {**ALL["backup-shm"], "task": "Counting"},
}
IN_STEP = ("small", "middle", "large")


def train(runs: Path, crew: str, **more: Any) -> paceline.Run:
    """Every sample adds 1 to its number in every epoch, by whichever worker."""
    asked = CREWS[crew] | more
    fields = {"epochs": EPOCHS, "evaluate": "never", "batch": BATCH}
    fields["lr"] = float(BATCH * asked["workers"])
    return paceline.fit(task(asked.pop("task")), out=runs, **(fields | asked))


def counted(run: paceline.Run) -> Tensor:
    ledger: Tensor = run.parameters()["seen"]
    return ledger[:: len(ledger) // SAMPLES]


def right(run: paceline.Run, crew: str, deaths: int = 1, share: int = BATCH) -> None:
    """As if nobody had died, but for the steps that were not finished, of at most `share` samples:
    more than a batch if one died who had taken on what another had left."""
    assert run.status == "done"
    seen = counted(run)
    workers = run.summary["spec"]["workers"]
    applied = {r["steps"] for r in run.roles if r["role"].startswith("server-")}
    rounds = EPOCHS * -(-SAMPLES // (BATCH * workers))
    if crew == "backup":  # what comes late is dropped in any case
        assert seen.gt(0).any()
        assert applied == {rounds}
        return
    unfinished = share * (EVERY if crew == "local-sgd" else 2) * deaths
    assert (seen < EPOCHS - 0.5).sum().item() <= unfinished
    if crew in IN_STEP:
        assert seen.max() <= EPOCHS + workers * deaths
        assert applied == {rounds}
        return
    # An averaging is over those who take part, so what one of them saw weighs more while others
    # are away, for as long as that lasts; none of it was seen more often.
    assert seen.max() <= workers * (EPOCHS + deaths)
    assert taken(run) <= EPOCHS * SAMPLES + unfinished


def taken(run: paceline.Run) -> int:
    """Samples of all workers' steps, as recorded."""
    workers = [r["role"] for r in run.roles if r["role"].startswith("worker-")]
    return sum(int(read_steps(run.folder.steps_path(w))["samples"].sum()) for w in workers)


def closed_after(run: paceline.Run, other: str) -> float:
    """Seconds from the first death until another worker had taken a step."""
    died = next(event["time"] for event in run.summary["events"] if event["kind"] == "died")
    ends = read_steps(run.folder.steps_path(other))["time"]
    return float(ends[np.searchsorted(ends, died)]) - died


def told(run: paceline.Run, kind: str) -> list[str]:
    return [event["role"] for event in run.summary["events"] if event["kind"] == kind]


@pytest.mark.matrix(2)
@pytest.mark.parametrize("crew", CREWS)
@pytest.mark.parametrize("role", ["worker-0", "worker-1"])
def test_a_killed_worker_comes_back(crew: str, role: str, runs: Path) -> None:
    rng = Random(f"{crew} {role}")

    def kill_soon(pids: dict[str, int]) -> None:
        time.sleep(rng.uniform(0, 0.05))
        os.kill(pids[role], signal.SIGKILL)

    with harm(runs, kill_soon, role) as watch:
        run = train(runs, crew)
    assert not alive([*watch.pids.values()])
    assert told(run, "died") == told(run, "back") == [role]
    right(run, crew)
    assert closed_after(run, "worker-1" if role == "worker-0" else "worker-0") < CLOSES_WITHIN
    last = {
        r["role"]: int(read_steps(run.folder.steps_path(r["role"]))["version"][-1])
        for r in run.roles
        if r["role"].startswith("worker-")
    }
    if crew in IN_STEP:
        assert len(set(last.values())) == 1, "it did not take part again"


@pytest.mark.matrix(2)
@pytest.mark.parametrize("crew", CREWS)
@pytest.mark.parametrize("role", ["worker-0", "worker-1"])
def test_killed_before_a_step(crew: str, role: str, runs: Path) -> None:
    """The first, where nobody has parameters but worker-0, and the last or the second."""
    last = EPOCHS * SAMPLES // (BATCH * CREWS[crew]["workers"])
    for step in (1, last if role == "worker-0" else 2):
        run = train(runs / str(step), crew, inject=[f"kill:{role}@step={step}"])
        right(run, crew)


@pytest.mark.matrix(1)
@pytest.mark.parametrize("crew", [*IN_STEP, "local-sgd"])
def test_two_of_three(crew: str, runs: Path) -> None:
    def both(pids: dict[str, int]) -> None:
        os.kill(pids["worker-0"], signal.SIGKILL)
        os.kill(pids["worker-2"], signal.SIGKILL)

    with harm(runs, both):
        run = train(runs, crew, workers=3)
    assert sorted(told(run, "back")) == ["worker-0", "worker-2"]
    right(run, crew, deaths=2, share=BATCH * 3 // 2)


@pytest.mark.matrix(1)
@pytest.mark.parametrize("crew", CREWS)
def test_the_one_that_comes_back_dies_again(crew: str, runs: Path) -> None:
    """As soon as it is up: it may just be asking, or be let in."""

    def again_and_again(pids: dict[str, int]) -> None:
        over = time.monotonic() + 20
        threading.Thread(target=_keep_killing, args=(runs, "worker-1", 3, over)).start()

    with harm(runs, again_and_again):
        run = train(runs, crew, epochs=EPOCHS)
    assert len(told(run, "died")) == 3
    right(run, crew, deaths=3)


def _keep_killing(runs: Path, role: str, times: int, over: float) -> None:
    killed: set[int] = set()
    while len(killed) < times and time.monotonic() < over:
        time.sleep(0.005)
        pid = Watch(runs).look().get(role)
        if pid and pid not in killed:
            time.sleep(0.03 * len(killed))
            killed.add(pid)
            os.kill(pid, signal.SIGKILL)


@pytest.mark.matrix(1)
@pytest.mark.parametrize("crew", ["small", "large"])
def test_stopped_for_longer_than_its_lease(crew: str, runs: Path) -> None:
    with harm(runs, lambda pids: os.kill(pids["worker-1"], signal.SIGSTOP)):
        run = train(runs, crew, lease=0.5)
    assert [event["kind"] for event in run.summary["events"]] == ["frozen", "died", "back"]
    right(run, crew)


@pytest.mark.matrix(1)
@pytest.mark.parametrize("crew", ["small", "large", "local-sgd"])
def test_all_at_once_is_the_end_and_is_told(crew: str, runs: Path) -> None:
    def all_of_them(pids: dict[str, int]) -> None:
        for role in ("worker-0", "worker-1"):
            os.kill(pids[role], signal.SIGKILL)

    with harm(runs, all_of_them), pytest.raises(RoleDied, match="no other worker had the param"):
        train(runs, crew, epochs=1000)


def test_a_round_needs_nobody_who_died_to_go_on(runs: Path) -> None:
    """Every worker of those whose parameters are in shared memory, one after the other."""

    def one_by_one(pids: dict[str, int]) -> None:
        for role in ("worker-0", "worker-1", "worker-2"):
            os.kill(pids[role], signal.SIGKILL)

    with harm(runs, one_by_one):
        run = train(runs, "backup")
    assert run.status == "done"
    assert len(told(run, "back")) == 3


@pytest.mark.matrix(1)
@pytest.mark.parametrize("crew", ["small", "large"])
def test_shares_by_speed_after_a_death(crew: str, runs: Path) -> None:
    with harm(runs, lambda pids: os.kill(pids["worker-1"], signal.SIGKILL)):
        run = train(runs, crew, balance=True, inject=["slow:worker-1x3"])
    right(run, crew)
    own = read_steps(run.folder.steps_path("worker-1"))
    assert 1 <= own["samples"][-1] < BATCH


def test_an_update_rule_goes_on_with_what_it_remembers(runs: Path) -> None:
    """Momentum of a worker that is gone is not gone: parameters stay near those of a calm run."""
    fields: dict[str, Any] = {"optimizer": "momentum", "lr": 0.01, "steps": 120, "epochs": None}
    ends: dict[str, Callable[[Path], paceline.Run]] = {
        "calm": lambda out: train(out, "small", task="Patient", **fields),
        "struck": lambda out: train(
            out, "small", task="Patient", **fields, inject=["kill:worker-0@step=40"]
        ),
    }
    calm, struck = (end(runs / name) for name, end in ends.items())
    for name, values in calm.parameters().items():
        assert (struck.parameters()[name] - values).abs().max() < 0.1
