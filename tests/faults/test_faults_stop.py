"""Ctrl-C and its kin at any moment: a usable partial run, and nothing left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from faults_tools import ALL, BESIDE_OTHERS, CREWS, ENDS_WITHIN, flags, harm, task

import paceline
from paceline.errors import Interrupted
from paceline.store.folder import RunFolder
from paceline.store.listing import list_runs

pytestmark = [pytest.mark.parallel, pytest.mark.timeout(60, method="signal")]

LONG = ("run", "--task", task("Patient"), "--epochs", "100000")


def to_this_process(number: int) -> Callable[[dict[str, int]], None]:
    return lambda pids: os.kill(os.getpid(), number)


@pytest.mark.matrix(4)
@pytest.mark.alone
@pytest.mark.parametrize(
    ("crew", "evaluator"),
    [*((crew, False) for crew in ALL), *((crew, True) for crew in ("single", "ps-async-tcp"))],
)
def test_ctrl_c_in_the_middle_leaves_a_usable_run(crew: str, evaluator: bool, runs: Path) -> None:
    with harm(runs, to_this_process(signal.SIGINT)) as watch:
        run = paceline.fit(
            task("Patient"), epochs=100000, evaluator=evaluator, out=runs, **ALL[crew]
        )
    assert watch.ended_within < ENDS_WITHIN
    assert run.status == "stopped"
    assert run.quality["accuracy"] is not None
    assert run.parameters().keys() == {"weight", "bias"}
    workers = [role for role in run.roles if role["role"].startswith("worker-")]
    assert all(role["steps"] for role in workers)
    if every := ALL[crew].get("sync_every"):  # they stop where they average
        assert all(role["steps"] % every == 0 for role in workers)
    assert [entry.state for entry in list_runs(runs)] == ["stopped"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_other_signals_stop_as_ctrl_c_does(number: int, runs: Path) -> None:
    with harm(runs, to_this_process(number)):
        run = paceline.fit(task("Patient"), epochs=100000, out=runs, **CREWS["ps-sync-shm"])
    assert run.status == "stopped"


def test_signals_mean_what_they_meant_before(runs: Path) -> None:
    before = signal.getsignal(signal.SIGINT)
    paceline.fit(task("Patient"), steps=1, out=runs)
    assert signal.getsignal(signal.SIGINT) is before


def test_the_command_says_that_it_was_interrupted(cli: Any) -> None:
    command = cli.start(*LONG, *flags(CREWS["ps-async-tcp"]), "--json")
    command.in_the_middle()
    os.kill(command.pid, signal.SIGINT)
    assert command.wait(BESIDE_OTHERS) == 130
    assert "Traceback" not in command.stderr
    assert cli.shown()["status"] == "stopped"
    assert [run["state"] for run in cli.listed()] == ["stopped"]


@pytest.mark.matrix(2)
@pytest.mark.parametrize("moment", [0.1, 0.3, 0.6, 1.0, 1.5, 2.0, 2.6, 3.3])
def test_ctrl_c_at_any_moment(moment: float, cli: Any) -> None:
    """Python starts, the folder is made, torch is imported, roles start."""
    command = cli.start(*LONG, *flags(CREWS["ps-sync-tcp"]), "--evaluator")
    time.sleep(moment)  # which is what is tested
    os.kill(command.pid, signal.SIGINT)
    if "Exception ignored" in command.stderr:  # while importing, Python itself may drop one
        os.kill(command.pid, signal.SIGINT)
    code = command.wait(BESIDE_OTHERS)
    # Before our first line runs it dies of the signal, as every Python program does; and with
    # code 1 where Python is not even up.
    early = code == -signal.SIGINT or (code == 1 and "Fatal Python error" in command.stderr)
    states = [entry.state for entry in list_runs(cli.cwd / "runs")]
    assert (code == 130 and states in ([], ["stopped"])) or (early and not states)


@pytest.mark.thorough
def test_ctrl_c_as_soon_as_there_is_a_folder(cli: Any) -> None:
    command = cli.start(*LONG, *flags(CREWS["ps-sync-tcp"]))
    command.folder  # noqa: B018 - waits for it
    os.kill(command.pid, signal.SIGINT)
    assert command.wait(BESIDE_OTHERS) == 130
    assert cli.shown()["status"] == "stopped"


def test_ctrl_c_before_anyone_watches_the_folder(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = RunFolder.create

    def make_and_interrupt(*given: Any) -> RunFolder:
        folder = make(*given)
        os.kill(os.getpid(), signal.SIGINT)
        return folder

    monkeypatch.setattr(RunFolder, "create", make_and_interrupt)
    run = paceline.fit(task("Patient"), epochs=100000, out=runs, **CREWS["ps-sync-tcp"])
    assert run.status == "stopped"


def test_a_second_ctrl_c_insists(runs: Path) -> None:
    """A worker that does not react: the second interrupt does not wait for it."""

    def interrupt_twice(pids: dict[str, int]) -> None:
        os.kill(pids["worker-1"], signal.SIGSTOP)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.3)  # so that it is a second one, not the same
        os.kill(os.getpid(), signal.SIGINT)

    with (
        harm(runs, interrupt_twice) as watch,
        pytest.raises(Interrupted, match="second interrupt"),
    ):
        paceline.fit(task("Patient"), epochs=100000, out=runs, **CREWS["ps-sync-tcp"])
    assert watch.ended_within < BESIDE_OTHERS
    assert [entry.state for entry in list_runs(runs)] == ["stopped"]


@pytest.mark.thorough
def test_impatience_breaks_nothing(cli: Any) -> None:
    """Interrupts in a row, the last of them while it is already ending."""
    command = cli.start(*LONG, *flags(CREWS["ps-sync-tcp"]))
    command.in_the_middle()
    deadline = time.monotonic() + BESIDE_OTHERS
    while command.process.poll() is None and time.monotonic() < deadline:
        os.kill(command.pid, signal.SIGINT)
        time.sleep(0.1)
    assert command.wait(1) == 130
    assert "Traceback" not in command.stderr
    assert cli.shown()["status"] == "stopped"


DROPPED = """
import os, signal
from paceline.interrupts import note_interrupts
from paceline.launch.stopping import Stopping
note_interrupts()
try:
    os.kill(os.getpid(), signal.SIGINT)
except KeyboardInterrupt:  # as a library does that takes it for a failure of its own
    pass
print(Stopping().asked)
"""


def test_ctrl_c_that_a_library_drops_is_remembered() -> None:
    assert subprocess.check_output([sys.executable, "-c", DROPPED], timeout=30) == b"True\n"
