"""Faults on order: what --inject says happens, once, and the run tells it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from faults_tools import ALL, task

import paceline
from paceline.api import launch_script
from paceline.errors import RoleDied, SpecError, StoreError
from paceline.files import need_space
from paceline.spec import RunSpec
from paceline.store.folder import RunFolder
from paceline.store.steps import read_steps

OWN_LOOP = """
import time
import torch
import paceline

model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
model, optimizer = paceline.parallel(model, optimizer)
for _ in range(60):
    model(torch.ones(1, 3)).sum().backward()
    time.sleep(0.005)
    optimizer.step()
"""

pytestmark = [pytest.mark.parallel, pytest.mark.timeout(60, method="signal")]


def train(runs: Path, crew: str, *inject: str, **more: Any) -> paceline.Run:
    fields = {"epochs": 8, "lr": 10.0, "evaluate": "never", "batch": 10, "inject": inject}
    return paceline.fit(task("Counting"), out=runs, **(fields | ALL[crew] | more))


def told(run: paceline.Run, *kinds: str) -> list[tuple[str, str]]:
    events = run.summary["events"]
    return [(event["role"], event["kind"]) for event in events if event["kind"] in kinds]


def computed(run: paceline.Run, role: str) -> float:
    """Seconds of a step in the middle: a machine that stands still lengthens a few."""
    return float(np.median(read_steps(run.folder.steps_path(role))["compute"]))


@pytest.mark.matrix(1)
@pytest.mark.parametrize("crew", ["ps-async-shm", "ps-sync-tcp"])
def test_a_kill_before_a_step_is_exact_and_happens_once(crew: str, runs: Path) -> None:
    run = train(runs, crew, "kill:worker-1@step=30")
    assert run.status == "done"
    assert told(run, "injected", "died", "back") == [
        *(("worker-1", "injected"), ("worker-1", "died"), ("worker-1", "back"))
    ]
    steps = read_steps(run.folder.steps_path("worker-1"))
    died = next(event["time"] for event in run.summary["events"] if event["kind"] == "died")
    assert steps[steps["time"] < died]["step"].max(initial=0) < 30
    assert steps[steps["time"] > died]["step"].min() >= 30
    if crew == "ps-async-shm":
        assert run.parameters()["seen"].eq(8).all()


@pytest.mark.alone
def test_a_stop_lasts_as_long_as_it_was_asked_to(runs: Path) -> None:
    """A machine that stands still makes it longer, though hardly three times in a row."""
    asked = {"worker-0": 0.3, "worker-1": 0.8}
    over: list[float] = []
    for _ in range(3):
        run = train(runs, "ps-async-shm", "stop:worker-1@step=20+0.8s", "stop:worker-0@0.2s+0.3s")
        assert run.parameters()["seen"].eq(8).all()
        assert not told(run, "died")
        ends = {role: read_steps(run.folder.steps_path(role))["time"] for role in asked}
        more = [float(np.diff(ends[role]).max()) - asked[role] for role in asked]
        assert min(more) > -0.05
        over.append(max(more))
        if over[-1] < 0.5:
            return
    pytest.fail(f"longer than asked for by {over} s")


@pytest.mark.alone
def test_a_stop_without_end_is_ended_by_the_lease(runs: Path) -> None:
    run = train(runs, "ps-async-shm", "stop:worker-1@step=20", lease=0.5)
    assert told(run, "died", "back") == [("worker-1", "died"), ("worker-1", "back")]
    assert run.parameters()["seen"].eq(8).all()


@pytest.mark.alone
def test_a_slow_worker_computes_longer(runs: Path) -> None:
    run = train(runs, "ps-sync-shm", "slow:worker-1x3")
    assert 2 < computed(run, "worker-1") / computed(run, "worker-0") < 4
    assert run.parameters()["seen"].eq(4).all()  # the rate is half of what counts by ones here


def test_a_full_disk_ends_the_run_and_is_not_full_for_the_next(runs: Path) -> None:
    with pytest.raises(StoreError, match="no space left on device; free some space"):
        train(runs, "ps-async-shm", "disk-full@0.2s", epochs=1000)
    folder = RunFolder.find(runs, "last")
    assert folder.state == "failed"
    assert next(event.kind for event in folder.events()) == "injected"
    need_space(folder.path / "spec.json")


def test_a_worker_finds_the_disk_full_too(runs: Path) -> None:
    """So that it is not only the supervisor's own file that the run ends with."""
    with pytest.raises(StoreError, match="no space left"):
        train(runs, "single", "disk-full@0.2s", epochs=1000)


def test_a_killed_server_ends_the_run(runs: Path) -> None:
    with pytest.raises(RoleDied, match="server-0 was killed by signal 9"):
        train(runs, "ps-async-tcp", "kill:server-0@step=20", epochs=1000, max_restarts=0)


def test_a_server_that_there_turns_out_not_to_be_is_a_wrong_request(runs: Path) -> None:
    crew = {"servers": None, "transport": "tcp"}
    with pytest.raises(SpecError, match="no server-5; it has worker-0 to worker-1, server-0"):
        train(runs, "ps-async-tcp", "kill:server-5@1s", **crew)


def test_what_never_happened_is_told(runs: Path) -> None:
    run = train(runs, "single", "kill:worker-0@100s", epochs=1)
    assert run.status == "done"
    assert told(run, "injected", "missed") == [("worker-0", "missed")]


def launch(runs: Path, tmp_path: Path, *inject: str) -> paceline.Run:
    script = tmp_path / "mine.py"
    script.write_text(OWN_LOOP)
    spec = RunSpec(task="<python>:mine.py", strategy="ps-sync", workers=2, inject=inject)
    return launch_script(spec, script, [], out=runs, echo=None)


@pytest.mark.thorough
def test_a_loop_of_ones_own_is_slowed_and_killed_alike(runs: Path, tmp_path: Path) -> None:
    run = launch(runs, tmp_path, "slow:worker-1x3")
    assert 2 < computed(run, "worker-1") / computed(run, "worker-0") < 4
    with pytest.raises(RoleDied, match="worker-1"):
        launch(runs, tmp_path, "kill:worker-1@step=30")
    steps = read_steps(RunFolder.find(runs, "last").steps_path("worker-1"))["step"]
    assert steps.max(initial=0) < 30


def test_the_faults_of_a_run_are_told(cli: Any) -> None:
    crew = (*("--strategy", "ps-async", "--workers", "2"), "--evaluate", "never")
    much = ("--epochs", "8", "--lr", "10")
    kill = ("--inject", "kill:worker-1@step=20", "--inject", "slow:worker-0x1.1")
    ran = cli.run("run", "--task", task("Counting"), *crew, *much, *kill)
    assert ran.process.returncode == 0, ran.stderr
    assert "killed (injected)" in ran.stdout
    assert "started again: worker-1 1 time" in ran.stdout
    shown = cli.shown()
    slow, killed = shown["faults"]
    assert (slow["what"], slow["seconds"]) == ("1.1 times as slow", None)
    assert (killed["what"], killed["role"], killed["injected"]) == ("killed", "worker-1", True)
    assert 0 < killed["seconds"] < 10
    assert {role["role"]: role["restarts"] for role in shown["roles"]}["worker-1"] == 1
