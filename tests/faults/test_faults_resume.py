"""A run that is killed and taken up again is the run that was never killed, to the bit."""

from __future__ import annotations

import functools
import json
import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from faults_tools import harm, kill, task

import paceline
from paceline.errors import RequestError, RoleDied
from paceline.spec import RunSpec
from paceline.store.folder import RunFolder
from paceline.store.steps import read_steps
from paceline.types import Facts

pytestmark = [pytest.mark.parallel, pytest.mark.timeout(60, method="signal")]

STEPS = 250  # more than a second
EVERY = 0.1  # seconds between checkpoints, here
ALIKE = ("step", "epoch", "samples", "loss", "version")

LENGTH: dict[str, Any] = {"steps": STEPS, "threads": 1, "checkpoint_every": EVERY}
RANDOM: dict[str, Any] = {"task": task("Random"), **LENGTH}
TWO: dict[str, Any] = {"workers": 2, "optimizer": "adam"}
LARGE: dict[str, Any] = LENGTH | {"task": task("RandomLarge"), "steps": 80}
LOCAL: dict[str, Any] = {"strategy": "local-sgd", "sync_every": 5, "outer_momentum": 0.9}
RUNS: dict[str, dict[str, Any]] = {
    "single": RANDOM | {"optimizer": "momentum"},
    "independent": RANDOM | TWO | {"strategy": "independent", "steps": 400},  # killed twice
    "allreduce": RANDOM | TWO | {"strategy": "allreduce"},
    "ps-sync": RANDOM | TWO | {"strategy": "ps-sync", "transport": "shm"},
    "lenet": LENGTH | {"task": "lenet", "data": "synthetic:2000x1x28x28", "steps": 120},
    "ps-sync-tcp": RANDOM | TWO | {"strategy": "ps-sync", "transport": "tcp", "codec": "int8"},
    "ps-sync-large": LARGE | TWO | {"strategy": "ps-sync", "transport": "shm"},
    "ps-sync-tcp-large": LARGE | TWO | {"strategy": "ps-sync", "transport": "tcp", "servers": 2},
    "local-sgd": RANDOM | TWO | LOCAL | {"transport": "shm"},
    "local-sgd-tcp": RANDOM | TWO | LOCAL | {"transport": "tcp"},
}


Whole = Callable[[str], paceline.Run]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    """Runs that nobody disturbed, not even for a checkpoint, and that hurry; each is made once."""
    out = tmp_path_factory.mktemp("whole")

    @functools.cache
    def made(name: str) -> paceline.Run:
        hurried = RUNS[name]["task"].replace(":Random", ":Hurried")
        alone = {"task": hurried, "checkpoint_every": 0.0}
        run = paceline.fit(out=out / name, **(RUNS[name] | alone))
        assert not (run.dir / "checkpoints").exists()
        return run

    return made


def words(fields: dict[str, Any]) -> list[str]:
    return [w for k, v in fields.items() for w in (f"--{k.replace('_', '-')}", str(v))]


def committed(folder: Path) -> list[Path]:
    return sorted(folder.glob("checkpoints/*/manifest.json"))


def same(one: paceline.Run, other: paceline.Run) -> None:
    """The same steps, the same parameters and buffers, the same final scores."""
    for role in one.folder.stepped_roles():
        mine, theirs = (read_steps(run.folder.steps_path(role)) for run in (one, other))
        for column in ALIKE:
            assert np.array_equal(mine[column], theirs[column]), (role, column)
        assert (np.diff(theirs["time"]) > 0).all()
    ours, others = one.parameters(), other.parameters()
    assert ours.keys() == others.keys()
    assert all(torch.equal(ours[name], others[name]) for name in ours)
    finals = [[s.values for s in run.folder.scores() if s.final] for run in (one, other)]
    assert sorted(map(str, finals[0])) == sorted(map(str, finals[1]))


def killed(command: Any, folder: Path, eventually: Callable[..., Any]) -> RunFolder:
    """The run of a launcher that is killed at some moment after its next checkpoint."""
    before = committed(folder)[-1:]
    eventually(lambda: committed(folder)[-1:] > before, 30, "a checkpoint")
    time.sleep(random.uniform(0, 0.3))  # the moment is what is tested
    os.kill(command.pid, signal.SIGKILL)
    command.wait(5)
    eventually(lambda: RunFolder(folder).state == "lost", 5, "lost")
    return RunFolder(folder)


KILLED = [
    *("ps-sync", "independent", "ps-sync-tcp-large", "local-sgd"),
    *("lenet", "allreduce", "ps-sync-large", "local-sgd-tcp"),
]


@pytest.mark.matrix(2)
@pytest.mark.parametrize("name", KILLED)
def test_killed_and_resumed_is_never_killed(
    name: str, cli: Any, eventually: Callable[..., Any], whole: Whole
) -> None:
    """One of them twice."""
    command = cli.start("run", *words(RUNS[name]), "--quiet")
    folder = killed(command, command.folder, eventually)
    twice = name == "independent"
    if twice:
        killed(cli.start("resume", folder.path, "--quiet"), folder.path, eventually)
    run = paceline.resume(folder.path)
    assert run.status == "done"
    told = [(e["kind"], e["detail"]) for e in run.summary["events"]]
    assert [kind for kind, _ in told] == ["resumed"] * (1 + twice), told
    same(whole(name), run)


@pytest.mark.matrix(2)
@pytest.mark.parametrize("name", ["single", "allreduce", "ps-sync", "ps-sync-tcp", "local-sgd"])
def test_ctrl_c_loses_nothing(name: str, runs: Path, whole: Whole) -> None:
    """No checkpoint is due before the run is stopped, so all depends on the one at the end."""
    with harm(runs, lambda pids: os.kill(os.getpid(), signal.SIGINT)):
        run = paceline.fit(out=runs, **(RUNS[name] | {"checkpoint_every": 1000.0}))
    assert run.status == "stopped"
    taken = run.roles[0]["steps"]
    assert 0 < taken < STEPS
    told = [(e["kind"], e["detail"]) for e in run.summary["events"]]
    assert ("kept", f"step {taken}, to go on from with paceline resume") in told
    resumed = paceline.resume(run)
    assert resumed.status == "done"
    assert (resumed.dir, resumed.roles[0]["steps"]) == (run.dir, STEPS)
    assert ("resumed", f"from checkpoint 1, step {taken}") in [
        (e["kind"], e["detail"]) for e in resumed.summary["events"]
    ]
    same(whole(name), resumed)


@pytest.mark.matrix(1)
@pytest.mark.parametrize(
    ("name", "every"), [("single", EVERY), ("independent", EVERY), ("independent", 0.0)]
)
def test_a_killed_worker_goes_on_from_its_checkpoint(
    name: str, every: float, runs: Path, whole: Whole
) -> None:
    """Or from the beginning where there is none."""
    role = "worker-0" if name == "single" else "worker-1"

    def a_little_later(pids: dict[str, int]) -> None:
        time.sleep(random.uniform(0.2, 0.6))  # the moment is what is tested
        kill(role)(pids)

    with harm(runs, a_little_later, role):
        run = paceline.fit(out=runs, **(RUNS[name] | {"checkpoint_every": every}))
    assert run.status == "done"
    assert [(e["role"], e["kind"]) for e in run.summary["events"]] == [
        *((role, "died"), (role, "back"))
    ]
    same(whole(name), run)


def test_a_run_that_failed_goes_on_without_its_faults(runs: Path, whole: Whole) -> None:
    harmed = {"inject": ("kill:worker-0@step=200",), "max_restarts": 0}
    with pytest.raises(RoleDied, match="worker-0 was killed"):
        paceline.fit(out=runs, **RUNS["single"], **harmed)
    run = paceline.resume(RunFolder.find(runs, "last").path)
    assert [e["kind"] for e in run.summary["events"]] == ["injected", "failed", "resumed"]
    assert run.summary["spec"]["inject"] == ["kill:worker-0@step=200"]
    same(whole("single"), run)


@pytest.mark.thorough
def test_it_can_be_made_longer(cli: Any, runs: Path) -> None:
    run = paceline.fit(out=runs, **RUNS["single"])
    with pytest.raises(RequestError, match=r"is done; to train it further.*--epochs N"):
        paceline.resume(run)
    with pytest.raises(RequestError, match=r"--steps 3: .* has taken \d+ already"):
        paceline.resume(run, steps=3)
    command = cli.run("resume", run.dir, "--steps", str(STEPS + 50), "--json")
    assert command.process.returncode == 0, command.stderr
    told = json.loads(command.stdout)
    assert (told["status"], told["roles"][0]["steps"]) == ("done", STEPS + 50)
    assert run.folder.read_spec()["spec"]["steps"] == STEPS + 50
    assert len([s for s in run.folder.scores() if s.final]) == 1


def test_a_damaged_checkpoint_is_named_and_the_one_before_taken(runs: Path) -> None:
    with harm(runs, _stop_after(runs, 2)):
        run = paceline.fit(out=runs, **(RUNS["single"] | {"steps": 100000}))
    newest = committed(run.dir)[-1]
    part = newest.with_name("worker-0.part")
    content = bytearray(part.read_bytes())
    content[len(content) // 2] ^= 1
    part.write_bytes(content)
    step = run.roles[0]["steps"]
    longer = paceline.resume(run, steps=step + 1)
    told = {e["kind"]: e["detail"] for e in longer.summary["events"]}
    assert f"{newest.parent.name}/worker-0.part' is damaged" in told["damaged"]
    assert int(told["resumed"].split()[-1]) < step
    assert longer.roles[0]["steps"] == step + 1


def _stop_after(runs: Path, number: int) -> Callable[[dict[str, int]], None]:
    def act(_: dict[str, int]) -> None:
        while not list(runs.glob(f"*/checkpoints/*{number}/manifest.json")):
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    return act


def test_what_cannot_be_written_is_told_and_training_goes_on(runs: Path) -> None:
    def in_the_way(_: dict[str, int]) -> None:
        (run,) = runs.glob("[!.]*")
        (run / "checkpoints").write_text("a file where a folder should be")

    with harm(runs, in_the_way):
        run = paceline.fit(out=runs, **(RUNS["single"] | {"checkpoint_every": 0.5}))
    assert run.status == "done"
    assert {e["kind"] for e in run.summary["events"]} == {"unkept"}


# What cannot be taken up.


@pytest.mark.thorough
def test_one_that_runs_or_has_no_checkpoint_is_refused(cli: Any) -> None:
    endless = RUNS["single"] | {"steps": 100000, "checkpoint_every": 0}
    command = cli.start("run", *words(endless))
    command.in_the_middle()
    with pytest.raises(RequestError, match="is still running"):
        paceline.resume(command.folder)
    os.kill(command.pid, signal.SIGINT)
    assert command.wait(5) == 130
    told = cli.run("resume", "last")
    assert told.process.returncode == 2
    assert "has no checkpoint; start it again with paceline run." in told.stderr


FACTS = Facts(parameters=1000, samples=100, batch=10, epochs=1, lr=0.1, optimizer="sgd")


@pytest.mark.parametrize(
    ("given", "spec", "why"),
    [
        ("object", RunSpec(), "handed over from Python"),
        ("spec", RunSpec(task="<python>:train.py"), "or a script"),
        ("spec", RunSpec(), "has no checkpoint; start it again"),
    ],
)
def test_what_cannot_be_taken_up(given: str, spec: RunSpec, why: str, runs: Path) -> None:
    folder = RunFolder.create(runs, spec, None, given)
    folder.write_resolved(spec, FACTS)
    folder.write_live("stopped", os.getpid(), [])
    with pytest.raises(RequestError, match=why):
        paceline.resume(folder.path)
    assert folder.state == "stopped"
