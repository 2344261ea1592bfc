"""Roles that end before they have met anybody, or because somebody told them to."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from faults_tools import ALL, alive, beside, harm, task
from test_faults_restart import counted, train

import paceline
from paceline.errors import RoleDied

pytestmark = [pytest.mark.parallel, pytest.mark.timeout(60, method="signal")]


@contextmanager
def as_soon_as_born(runs: Path, role: str, act: Callable[[int], None]) -> Iterator[list[int]]:
    """Do it to a role once it has a process."""
    done: list[int] = []

    def look() -> bool:
        for live in runs.glob("[!.]*/roles.json"):
            roles = json.loads(live.read_text())["roles"]
            pids = [each["pid"] for each in roles if each["role"] == role and each["pid"]]
            if pids:
                done.append(pids[0])
                act(pids[0])
                return True
        return False

    with beside(look, 0.002):
        yield done


def killing(after: float) -> Callable[[int], None]:
    def act(pid: int) -> None:
        time.sleep(after)
        os.kill(pid, signal.SIGKILL)

    return act


@pytest.mark.matrix(3)
@pytest.mark.parametrize(
    ("crew", "after"),
    [
        *(("single", 0.0), ("allreduce", 0.0), ("allreduce", 0.5), ("ps-sync-shm", 0.0)),
        *(("ps-sync-shm", 0.5), ("ps-async-tcp", 0.2), ("ssp-shm", 0.5), ("hogwild", 0.3)),
    ],
)
def test_a_worker_that_is_killed_before_it_is_ready_is_started_again(
    crew: str, after: float, runs: Path
) -> None:
    """It takes a second to be ready, so nobody knows of it yet: all goes as if it had not been."""
    role = f"worker-{ALL[crew].get('workers', 1) - 1}"
    with as_soon_as_born(runs, role, killing(after)) as killed:
        fields = {"steps": 20, "evaluate": "never"}
        run = paceline.fit(task("BuildsSlowly"), out=runs, **fields, **ALL[crew])
    assert run.status == "done"
    (died,) = [event for event in run.summary["events"] if event["kind"] == "died"]
    assert died["role"] == role
    assert "started again (1 of 3)" in died["detail"]
    assert not alive(killed)
    assert [each["restarts"] for each in run.roles if each["role"] == role] == [1]


def test_one_that_is_killed_each_time_ends_the_run(runs: Path) -> None:
    over = threading.Event()

    def kill_all(_: int) -> None:
        seen: set[int] = set()
        while not over.wait(0.01):
            for live in runs.glob("[!.]*/roles.json"):
                for each in json.loads(live.read_text())["roles"]:
                    if each["role"] == "worker-1" and each["pid"] not in seen | {0}:
                        seen.add(each["pid"])
                        os.kill(each["pid"], signal.SIGKILL)

    try:
        with (
            as_soon_as_born(runs, "worker-1", kill_all),
            pytest.raises(RoleDied, match="worker-1 was killed by signal 9"),
        ):
            paceline.fit(task("BuildsSlowly"), out=runs, max_restarts=2, **ALL["ps-sync-shm"])
    finally:
        over.set()


@pytest.mark.matrix(3)
@pytest.mark.parametrize(
    ("crew", "role"),
    [
        ("ps-sync-tcp", "server-0"),
        ("ps-async-tcp", "server-1"),
        ("replicas", "standby-0"),
        ("replicas", "server-0"),
        ("ps-async-shm", "evaluator"),
    ],
)
def test_a_role_that_is_told_to_end_is_started_again(crew: str, role: str, runs: Path) -> None:
    """A machine that shuts down says SIGTERM before it says anything worse."""
    with harm(runs, lambda pids: os.kill(pids[role], signal.SIGTERM), role):
        if role == "evaluator":
            fields = {"epochs": 4, "evaluator": True}
            run = paceline.fit(task("Patient"), out=runs, **fields, **ALL[crew])
        elif crew == "replicas":
            run = train(runs, "ps-sync-tcp", replicas=1)
        else:
            run = train(runs, crew)
    assert run.status == "done"
    (died,) = [event for event in run.summary["events"] if event["kind"] == "died"]
    assert died["role"] == role
    assert died["detail"].startswith("was told to end, by SIGTERM")
    if role != "evaluator":
        assert counted(run).eq(4).all()
