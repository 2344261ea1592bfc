"""Real roles, several runs: nothing piles up, nothing gets mixed up."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import paceline
from paceline import api
from paceline.types import Event, Progress, Score

pytestmark = [pytest.mark.parallel, pytest.mark.timeout(60, method="signal")]

SMALL: dict[str, Any] = {"data": "synthetic:300x8:3", "batch": 10}


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_many_runs_share_one_nursery_and_leave_no_descriptor_open(runs: Path) -> None:
    crews: list[dict[str, Any]] = [
        {"strategy": "ps-sync", "workers": 2, "transport": "shm"},
        {"strategy": "ps-async", "workers": 2, "transport": "tcp"},
        {"strategy": "allreduce", "workers": 2},
        {"strategy": "single", "evaluator": True},
    ]
    paceline.fit("softmax", steps=3, out=runs, **SMALL)
    nursery, before = api._idle[-1].pid, descriptors()
    for crew in crews:
        assert paceline.fit("softmax", steps=3, out=runs, **SMALL, **crew).status == "done"
    assert api._idle[-1].pid == nursery
    assert descriptors() == before


def test_a_nursery_that_died_between_runs_is_replaced(runs: Path) -> None:
    paceline.fit("softmax", steps=3, out=runs, **SMALL)
    before = api._idle[-1]
    before._process.kill()
    before._process.wait()
    assert paceline.fit("softmax", steps=3, out=runs, **SMALL).status == "done"
    assert api._idle[-1] is not before


def test_a_run_may_be_started_from_any_thread(runs: Path) -> None:
    found = []
    thread = threading.Thread(
        target=lambda: found.append(
            paceline.fit("softmax", strategy="ps-sync", workers=2, steps=5, out=runs, **SMALL)
        )
    )
    thread.start()
    thread.join(40)
    assert [run.status for run in found] == ["done"]


@pytest.mark.thorough
def test_two_runs_at_once_from_two_threads_do_not_meet(runs: Path) -> None:
    ends: list[object] = []

    def fit(transport: str) -> None:
        try:
            crew = {"strategy": "ps-sync", "workers": 2, "transport": transport}
            run = paceline.fit("softmax", steps=300, out=runs, **SMALL, **crew)
            ends.append(run.status)
        except paceline.PacelineError as wrong:
            ends.append(wrong)

    threads = [threading.Thread(target=fit, args=(way,), daemon=True) for way in ("tcp", "shm")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert ends == ["done", "done"]


@pytest.mark.thorough
def test_two_commands_at_once_do_not_meet(cli: Any) -> None:
    asked = (
        *("run", "--task", "softmax", "--data", "synthetic:300x8:3", "--batch", "10"),
        *("--strategy", "ps-sync", "-n", "2", "--steps", "200", "--json"),
    )
    commands = [cli.start(*asked, "--transport", way) for way in ("shm", "tcp", "shm")]
    told = []
    for command in commands:
        assert command.wait(50) == 0, command.stderr
        told.append(json.loads(command.stdout))
    assert len({one["run"] for one in told}) == 3
    assert {one["status"] for one in told} == {"done"}
    assert len({one["quality"]["loss"] for one in told}) == 1  # the same spec, the same result


def test_json_is_one_object_from_any_directory(cli: Any) -> None:
    """`paceline run … --json | python -m json.tool`"""
    asked = "--task softmax --data mnist --strategy ps-async --workers 2 --batch 200 --epochs 1"
    first = subprocess.Popen(
        [sys.executable, "-m", "paceline.cli", "run", *asked.split(), "--json"],
        cwd=cli.cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    second = subprocess.run(
        [sys.executable, "-m", "json.tool"], stdin=first.stdout, capture_output=True, check=False
    )
    assert first.stdout is not None
    first.stdout.close()
    assert first.wait(30) == 0
    assert second.returncode == 0
    told = json.loads(second.stdout)
    assert told["run"] in os.listdir(cli.cwd / "runs")  # noqa: PTH208
    assert told.keys() >= {
        *("run", "dir", "status", "spec", "throughput", "seconds", "quality"),
        *("roles", "verdict", "events"),
    }
    assert told["quality"]["accuracy"] > 0.85
    assert [role["role"] for role in told["roles"]] == ["worker-0", "worker-1", "server-0"]
    assert sum(role["samples"] for role in told["roles"][:2]) == 60_000
    for role in told["roles"]:
        assert role.keys() >= {
            *("role", "host", "device", "samples", "steps", "seconds", "accuracy", "cpu_pct"),
            *("memory_mb", "sent_mb", "received_mb", "phases", "staleness"),
        }


def test_a_task_that_exists_only_here_is_handed_over_by_value(runs: Path) -> None:
    width = 5

    class Local(paceline.Task):
        def model(self) -> nn.Module:
            return nn.Linear(width, 2)

        def data(self) -> paceline.Data:
            x = torch.randn(60, width)
            y = (x[:, 0] > 0).long()
            return paceline.Data(train=paceline.Arrays(x, y), test=paceline.Arrays(x, y))

    for task in (Local, Local()):
        run = paceline.fit(task, strategy="ps-sync", workers=2, batch=5, steps=4, out=runs)
        assert run.status == "done"
        assert run.parameters()["weight"].shape == (2, width)
        assert "Local" in run.summary["spec"]["task"]


class Watcher:
    def __init__(self) -> None:
        self.events: list[Event] = []
        self.roles: set[str] = set()
        self.scores: list[Score] = []
        self.closed = 0

    def event(self, event: Event) -> None:
        self.events.append(event)

    def progress(self, role: str, progress: Progress) -> None:
        self.roles.add(role)

    def score(self, score: Score) -> None:
        self.scores.append(score)

    def close(self) -> None:
        self.closed += 1


def test_an_observer_sees_progress_and_scores(runs: Path) -> None:
    watcher = Watcher()
    run = paceline.fit(
        "softmax",
        strategy="ps-async",
        workers=2,
        transport="tcp",
        epochs=2,
        out=runs,
        observer=watcher,
        **SMALL,
    )
    assert {"worker-0", "worker-1"} <= watcher.roles
    assert watcher.scores == run.folder.scores()
    assert watcher.closed == 1


@pytest.mark.thorough
def test_the_live_file_lists_every_role_while_it_runs(
    runs: Path, cli: Any, eventually: Callable[..., Any]
) -> None:
    command = cli.start(
        *("run", "--task", "softmax", "--data", "synthetic:300x8:3", "--batch", "10"),
        *("--strategy", "ps-sync", "-n", "2", "--transport", "tcp", "--servers", "2"),
        *("--evaluator", "--epochs", "100000"),
    )
    expected = {"worker-0", "worker-1", "server-0", "server-1", "evaluator"}
    pids = command.in_the_middle(*expected)
    assert pids.keys() == expected
    assert len(set(pids.values())) == 5
    live = eventually(lambda: (now := command.live())["state"] == "running" and now, 5, "running")
    assert live["launcher"]["pid"] == command.pid
    for role in live["roles"]:
        assert role["host"]
        assert role["threads"] >= 1
        assert role["state"] in ("ready", "starting")
    command.process.terminate()
    assert command.wait(10) == 130


def test_the_same_spec_gives_the_same_result(runs: Path) -> None:
    for crew in (
        {"strategy": "single"},
        {"strategy": "ps-sync", "workers": 3, "transport": "shm"},
        {"strategy": "ps-sync", "workers": 3, "transport": "tcp", "servers": 2},
        {"strategy": "allreduce", "workers": 2},
    ):
        one, two = (
            paceline.fit("softmax", steps=20, seed=5, out=runs, **SMALL, **crew).parameters()
            for _ in range(2)
        )
        for name, value in one.items():
            assert torch.equal(value, two[name]), crew
