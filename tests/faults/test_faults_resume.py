"""A run that is killed and taken up again is the run that was never killed, to the bit."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from faults_tools import harm, kill, task

import paceline
from paceline.errors import RequestError
from paceline.spec import RunSpec
from paceline.store.folder import RunFolder
from paceline.store.steps import read_steps
from paceline.types import Facts

pytestmark = [pytest.mark.parallel, pytest.mark.timeout(60, method="signal")]

STEPS = 400
EVERY = 0.15  # seconds between checkpoints, here
ALIKE = ("step", "epoch", "samples", "loss", "version")

LENGTH: dict[str, Any] = {"steps": STEPS, "threads": 1, "checkpoint_every": EVERY}
TWO: dict[str, Any] = {"workers": 2, "optimizer": "adam"}
KEPT: dict[str, dict[str, Any]] = {
    "single": {"optimizer": "momentum"},
    "allreduce": {"strategy": "allreduce", **TWO},
    "ps-sync": {"strategy": "ps-sync", "transport": "shm", **TWO},
}


def never_killed(out: Path, what: str, **more: Any) -> paceline.Run:
    return paceline.fit(what, out=out / "whole", **LENGTH, **more)


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


def killed(cli: Any, eventually: Callable[..., Any], fields: dict[str, Any]) -> Path:
    """A run whose launcher is killed at some moment after its first checkpoint."""
    command = cli.start("run", *words(fields), "--quiet")
    folder: Path = command.folder
    eventually(lambda: committed(folder), 30, "a checkpoint")
    time.sleep(random.uniform(0, 0.6))  # the moment is what is tested
    os.kill(command.pid, signal.SIGKILL)
    command.wait(5)
    eventually(lambda: RunFolder(folder).state == "lost", 5, "lost")
    return folder


@pytest.mark.parametrize("crew", KEPT)
def test_killed_and_resumed_is_never_killed(
    crew: str, cli: Any, runs: Path, eventually: Callable[..., Any]
) -> None:
    fields = {"task": task("Random"), **LENGTH, **KEPT[crew]}
    folder = killed(cli, eventually, fields)
    run = paceline.resume(folder)
    assert run.status == "done"
    assert [e["kind"] for e in run.summary["events"]] == ["resumed"]
    same(never_killed(runs, task("Random"), **KEPT[crew]), run)


def test_it_is_killed_again_and_again(cli: Any, runs: Path, eventually: Callable[..., Any]) -> None:
    fields = {"task": task("Random"), **LENGTH, "optimizer": "adam", "strategy": "independent"}
    folder = killed(cli, eventually, fields | {"workers": 2})
    command = cli.start("resume", folder, "--quiet")
    before = committed(folder)[-1]
    eventually(lambda: committed(folder)[-1] > before, 30, "another checkpoint")
    os.kill(command.pid, signal.SIGKILL)
    command.wait(5)
    eventually(lambda: RunFolder(folder).state == "lost", 5, "lost")
    again = cli.run("resume", folder, "--json")
    assert again.process.returncode == 0, again.stderr
    assert json.loads(again.stdout)["status"] == "done"
    whole = never_killed(runs, task("Random"), optimizer="adam", strategy="independent", workers=2)
    same(whole, paceline.Run(RunFolder(folder)))


def test_lenet_on_digits(cli: Any, runs: Path, eventually: Callable[..., Any]) -> None:
    more = {"data": "synthetic:2000x1x28x28", "batch": 16, "epochs": 1, "threads": 1}
    fields = {"task": "lenet", "checkpoint_every": EVERY, **more}
    folder = killed(cli, eventually, fields)
    whole = paceline.fit("lenet", out=runs / "whole", checkpoint_every=0, **more)
    assert not (whole.dir / "checkpoints").exists()
    same(whole, paceline.resume(folder))


@pytest.mark.parametrize("crew", KEPT)
def test_ctrl_c_loses_nothing(crew: str, runs: Path) -> None:
    """No checkpoint is due before the run is stopped, so all depends on the one at the end."""
    fields = {**LENGTH, "checkpoint_every": 1000.0, **KEPT[crew]}
    with harm(runs, lambda pids: os.kill(os.getpid(), signal.SIGINT)):
        run = paceline.fit(task("Random"), out=runs, **fields)
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
    same(never_killed(runs, task("Random"), **KEPT[crew]), resumed)


@pytest.mark.parametrize("crew", ["single", "independent"])
@pytest.mark.parametrize("every", [EVERY, 0.0])
def test_a_killed_worker_goes_on_from_its_checkpoint(crew: str, every: float, runs: Path) -> None:
    role, workers = ("worker-0", 1) if crew == "single" else ("worker-1", 2)
    more = {"strategy": crew, "workers": workers, "optimizer": "adam"}

    def a_little_later(pids: dict[str, int]) -> None:
        time.sleep(random.uniform(0.2, 0.8))  # the moment is what is tested
        kill(role)(pids)

    with harm(runs / "one", a_little_later, role):
        run = paceline.fit(
            task("Random"), out=runs / "one", **(LENGTH | {"checkpoint_every": every}), **more
        )
    assert run.status == "done"
    told = [(e["role"], e["kind"]) for e in run.summary["events"]]
    assert told == [(role, "died"), (role, "back")]
    same(never_killed(runs, task("Random"), **more), run)


def test_it_can_be_made_longer(runs: Path) -> None:
    run = paceline.fit(task("Random"), out=runs, **LENGTH)
    with pytest.raises(RequestError, match=r"is done; to train it further.*--epochs N"):
        paceline.resume(run)
    with pytest.raises(RequestError, match=r"--steps 3: .* has taken \d+ already"):
        paceline.resume(run, steps=3)
    longer = paceline.resume(run, steps=STEPS + 50)
    assert longer.status == "done"
    assert longer.roles[0]["steps"] == STEPS + 50
    assert longer.folder.read_spec()["spec"]["steps"] == STEPS + 50
    assert len([s for s in longer.folder.scores() if s.final]) == 1


def test_a_damaged_checkpoint_is_named_and_the_one_before_taken(runs: Path) -> None:
    with harm(runs, _stop_after(runs, 3)):
        run = paceline.fit(task("Random"), out=runs, **(LENGTH | {"steps": 100000}))
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
        run = paceline.fit(task("Random"), out=runs, **(LENGTH | {"checkpoint_every": 0.5}))
    assert run.status == "done"
    assert {e["kind"] for e in run.summary["events"]} == {"unkept"}


# What cannot be taken up.


def test_one_that_runs_is_refused(cli: Any) -> None:
    command = cli.start("run", *words({"task": task("Random"), **LENGTH, "steps": 100000}))
    command.in_the_middle()
    told = cli.run("resume", "last")
    assert told.process.returncode == 2
    assert "is still running" in told.stderr
    os.kill(command.pid, signal.SIGINT)
    assert command.wait(5) == 130


def test_one_without_a_checkpoint_says_so(cli: Any) -> None:
    command = cli.start("run", *words({"task": task("Random"), **LENGTH, "checkpoint_every": 0}))
    command.in_the_middle()
    os.kill(command.pid, signal.SIGINT)
    command.wait(5)
    told = cli.run("resume", "last")
    assert told.process.returncode == 2
    assert "has no checkpoint; start it again with paceline run." in told.stderr


FACTS = Facts(parameters=1000, samples=100, batch=10, epochs=1, lr=0.1, optimizer="sgd")


@pytest.mark.parametrize(
    ("given", "spec", "facts", "why"),
    [
        ("object", RunSpec(), FACTS, "handed over from Python"),
        ("spec", RunSpec(task="<python>:train.py"), FACTS, "or a script"),
        ("spec", RunSpec(strategy="ps-async", workers=2), FACTS, "which keeps no checkpoints"),
        (
            "spec",
            RunSpec(strategy="ps-sync", workers=2, transport="shm"),
            replace(FACTS, parameters=10**6),
            "'ps-sync' over shm, which keeps no checkpoints of this model; start it again",
        ),
        ("spec", RunSpec(), FACTS, "has no checkpoint; start it again"),
    ],
)
def test_what_cannot_be_taken_up(
    given: str, spec: RunSpec, facts: Facts, why: str, runs: Path
) -> None:
    folder = RunFolder.create(runs, spec, None, given)
    folder.write_resolved(spec, facts)
    folder.write_live("stopped", os.getpid(), [])
    with pytest.raises(RequestError, match=why):
        paceline.resume(folder.path)
    assert folder.state == "stopped"
