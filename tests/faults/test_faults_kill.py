"""kill -9 of any one process where none is started again: the run ends and names it."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from faults_tools import (
    ALL,
    BESIDE_OTHERS,
    CREWS,
    ENDS_WITHIN,
    RELATIVES,
    alive,
    flags,
    harm,
    kill,
    parent,
    task,
)

import paceline
from paceline.errors import RoleDied, RunFailed
from paceline.store.listing import list_runs

pytestmark = [pytest.mark.parallel, pytest.mark.timeout(60, method="signal")]

LONG = (
    *("run", "--task", task("Patient"), "--epochs", "100000", "--evaluate", "end"),
    *("--max-restarts", "0"),
)

LASTING: dict[str, Any] = {"epochs": 100000, "max_restarts": 0}

SERVED = ("ps-sync-tcp", "ps-async-tcp", "ssp-tcp")
VICTIMS = [
    *[(crew, role) for crew in CREWS if crew != "single" for role in ("worker-0", "worker-1")],
    *[(crew, f"worker-{number % 2}") for number, crew in enumerate(RELATIVES)],
    *[(crew, "evaluator") for crew in ("single", "allreduce", "ps-sync-shm", "ps-async-tcp")],
    *[(crew, f"server-{number % 2}") for number, crew in enumerate(SERVED)],
]


@pytest.mark.matrix(5)
@pytest.mark.alone
@pytest.mark.parametrize(("crew", "role"), VICTIMS)
def test_a_killed_role_ends_the_run_and_is_named(crew: str, role: str, runs: Path) -> None:
    with harm(runs, kill(role), role) as watch, pytest.raises(RoleDied) as died:
        paceline.fit(
            task("Patient"),
            **LASTING,
            evaluator=role == "evaluator",
            out=runs,
            **ALL[crew],
        )
    assert watch.ended_within < ENDS_WITHIN
    assert not alive([*watch.pids.values()])
    assert re.match(rf"{role} .*was killed by signal 9 \(SIGKILL", str(died.value))
    assert [entry.state for entry in list_runs(runs)] == ["failed"]


def test_a_server_inside_a_worker_is_listed_with_it(runs: Path) -> None:
    """Over shared memory there is no process to kill but the worker: the live file says so."""
    with harm(runs, kill("server-1"), "server-1") as watch, pytest.raises(RoleDied) as died:
        paceline.fit(task("Patient"), **LASTING, out=runs, **CREWS["ps-sync-shm"])
    assert watch.pids["server-1"] == watch.pids["worker-1"]
    assert str(died.value).startswith("worker-1 with server-1 inside it was killed")


@pytest.mark.matrix(1)
@pytest.mark.parametrize(
    ("crew", "role"),
    [
        ("ps-async-tcp", "server-0"),
        ("ps-sync-shm", "worker-1"),
        ("allreduce", "worker-0"),
        ("ps-async-shm", "evaluator"),
    ],
)
def test_the_command_ends_and_names_the_role(crew: str, role: str, cli: Any) -> None:
    """As a user sees it."""
    command = cli.start(*LONG, *flags(CREWS[crew]), "--evaluator")
    pids = command.in_the_middle(role)
    os.kill(pids[role], signal.SIGKILL)
    assert command.wait(BESIDE_OTHERS) == 1
    assert not alive([*pids.values()])
    told = command.stderr.splitlines()[-1]
    assert re.match(rf"paceline: {role} .*was killed by signal 9 \(SIGKILL", told)
    assert command.live()["state"] == "failed"
    assert command.stdout == ""


@pytest.mark.matrix(1)
@pytest.mark.parametrize("crew", ["ps-async-tcp", "ps-sync-shm", "allreduce"])
def test_a_killed_launcher_takes_everything_along(
    crew: str, cli: Any, eventually: Callable[..., Any]
) -> None:
    command = cli.start(*LONG, *flags(CREWS[crew]), "--evaluator")
    pids = [*command.in_the_middle("evaluator").values()]
    nursery = parent(pids[0])
    os.kill(command.pid, signal.SIGKILL)
    command.process.wait()
    eventually(lambda: not alive([*pids, nursery]), BESIDE_OTHERS, "all gone")
    assert [entry.state for entry in list_runs(command.folder.parent)] == ["lost"]


@pytest.mark.thorough
def test_a_launcher_killed_while_it_starts(cli: Any, eventually: Callable[..., Any]) -> None:
    command = cli.start(*LONG, *flags(CREWS["ps-sync-tcp"]))
    command.folder  # noqa: B018 - waits for it
    children = Path(f"/proc/{command.pid}/task/{command.pid}/children").read_text().split()
    assert children
    os.kill(command.pid, signal.SIGKILL)
    command.process.wait()
    eventually(lambda: not alive([int(child) for child in children]), BESIDE_OTHERS, "all gone")


@pytest.mark.matrix(1)
@pytest.mark.parametrize("crew", ["ps-async-shm", "ps-sync-tcp"])
def test_a_killed_nursery_ends_the_run_and_not_the_next(
    crew: str, runs: Path, eventually: Callable[..., Any]
) -> None:
    def kill_nursery(pids: dict[str, int]) -> None:
        os.kill(pids["worker-1"], signal.SIGSTOP)  # it cannot end of its own accord
        os.kill(parent(pids["worker-0"]), signal.SIGKILL)

    with (
        harm(runs, kill_nursery) as watch,
        pytest.raises(RunFailed, match="the process that starts roles is gone"),
    ):
        paceline.fit(task("Patient"), **LASTING, out=runs, **CREWS[crew])
    assert watch.ended_within < BESIDE_OTHERS
    eventually(lambda: not alive([*watch.pids.values()]), BESIDE_OTHERS, "all gone")
    assert [entry.state for entry in list_runs(runs)] == ["failed"]
    assert paceline.fit(task("Patient"), steps=3, out=runs, **CREWS[crew]).status == "done"


@pytest.mark.matrix(1)
@pytest.mark.parametrize("crew", ["ps-async-tcp", "ps-sync-shm", "allreduce"])
def test_a_role_that_hears_nothing_is_no_reason_to_hang(crew: str, runs: Path) -> None:
    def stop_one_kill_one(pids: dict[str, int]) -> None:
        os.kill(pids["worker-1"], signal.SIGSTOP)
        os.kill(pids["worker-0"], signal.SIGKILL)

    with harm(runs, stop_one_kill_one) as watch, pytest.raises(RoleDied) as died:
        paceline.fit(task("Patient"), **LASTING, out=runs, **CREWS[crew])
    assert watch.ended_within < BESIDE_OTHERS
    assert str(died.value).startswith("worker-0 ")


@pytest.mark.matrix(1)
@pytest.mark.parametrize("crew", ["ps-async-shm", "ps-async-tcp"])
def test_the_last_words_of_a_killed_role_are_told(crew: str, runs: Path) -> None:
    with harm(runs, kill("worker-1")), pytest.raises(RoleDied) as died:
        paceline.fit(task("Talks"), **LASTING, out=runs, **CREWS[crew])
    assert "this is worker-1" in died.value.log


@pytest.mark.thorough
def test_an_interrupt_while_a_failed_run_ends_changes_nothing(cli: Any) -> None:
    """A stopped role keeps the ending busy for its whole grace; Ctrl-C falls into that."""
    command = cli.start(*LONG, *flags(CREWS["ps-async-tcp"]))
    pids = command.in_the_middle()
    os.kill(pids["worker-1"], signal.SIGSTOP)
    os.kill(pids["worker-0"], signal.SIGKILL)
    time.sleep(0.6)  # its echo is over, its grace is not
    os.kill(command.pid, signal.SIGINT)
    assert command.wait(BESIDE_OTHERS) == 1
    assert "worker-0" in command.stderr.splitlines()[-1]
    assert [entry.state for entry in list_runs(cli.cwd / "runs")] == ["failed"]
