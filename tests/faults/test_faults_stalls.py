"""Roles that stand still are named while they do, with what they are at and who waits for them."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pytest
from faults_tools import ALL, harm, task

import paceline
from paceline.api import launch_script
from paceline.spec import RunSpec

pytestmark = [pytest.mark.parallel, pytest.mark.alone, pytest.mark.timeout(60, method="signal")]

AFTER = 0.5  # seconds; the machine itself may stand still for some of it

OWN_LOOP = """
import time
import torch
import paceline

model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
model, optimizer = paceline.parallel(model, optimizer)
for step in range(30):
    model(torch.ones(1, 3)).sum().backward()
    time.sleep(1.2 if step == 20 else 0.005)
    optimizer.step()
"""


def train(runs: Path, crew: str, name: str = "Patient", **more: Any) -> paceline.Run:
    fields = {"steps": 50, "evaluate": "never", "stall_after": AFTER, "lease": 0.0}
    return paceline.fit(task(name), out=runs, **(fields | ALL[crew] | more))


def stalls(run: paceline.Run, *, of: str = "stalled") -> list[tuple[str, str]]:
    """Of roles and what was told of each; how fast the machine imports torch is not of interest."""
    events = [event for event in run.summary["events"] if event["kind"] == of]
    return [(event["role"], event["detail"]) for event in events if event["role"] != "nursery"]


def stop(role: str, seconds: float) -> Callable[[dict[str, int]], None]:
    def act(pids: dict[str, int]) -> None:
        os.kill(pids[role], signal.SIGSTOP)
        threading.Timer(seconds, os.kill, (pids[role], signal.SIGCONT)).start()

    return act


def stopped(run: paceline.Run, role: str, waiting: Collection[str]) -> None:
    """It was named once, with those that wait for it, and its going on is told."""
    told = stalls(run)
    assert [who for who, _ in told] == [role], told
    what = told[0][1]
    assert what.startswith("has been stopped (SIGSTOP) for ")
    wait = what.partition("; ")[2].partition(" for it")[0]
    assert all(other in wait for other in waiting), what
    ((again, after),) = stalls(run, of="moving")
    assert again == role
    assert after.startswith("after ")
    kept = run.folder.path / what.rpartition("see ")[2]
    assert "stopped" in kept.read_text()
    assert [fault["what"] for fault in run.summary["faults"]] == ["frozen"]


@pytest.mark.parametrize(
    ("crew", "role", "waiting"),
    [
        ("ps-sync-shm", "worker-1", ["worker-0 waits"]),
        # A server that had its push already does not wait for it.
        ("ps-sync-tcp", "worker-0", ["worker-1", "server-"]),
        ("ps-sync-tcp", "server-1", ["worker-0", "worker-1"]),
        ("allreduce", "worker-0", ["worker-1 waits"]),
    ],
)
def test_a_stopped_role_is_named_with_those_that_wait_for_it(
    crew: str, role: str, waiting: list[str], runs: Path
) -> None:
    """Of five seconds, within six. By then even one that is slow in its first step waits."""
    after = 2 * AFTER
    with harm(runs, stop(role, after + 1.0), role) as watch:
        run = train(runs, crew, stall_after=after)
    stopped(run, role, waiting)
    told = next(e["time"] for e in run.summary["events"] if "SIGSTOP" in e["detail"])
    since = told + run.folder.read_spec()["t0"] - watch.harmed
    assert after - 0.1 < since < after + 0.9


def test_a_lease_that_ends_before_names_those_that_waited(runs: Path) -> None:
    with harm(runs, lambda pids: os.kill(pids["worker-1"], signal.SIGSTOP)):
        run = train(runs, "ps-sync-shm", lease=0.5, stall_after=5.0)
    died = next(e["detail"] for e in run.summary["events"] if e["kind"] == "died")
    assert died.startswith("was frozen and did not go on in time, while ")
    assert ", and worker-0 waited for it; started again (1 of 3)" in died
    assert not stalls(run)


def test_whoever_sleeps_in_forward_is_named_and_not_who_waits_for_it(runs: Path) -> None:
    run = train(runs, "ps-sync-tcp", "SleepsInForward")
    ((role, what),) = stalls(run)
    assert role == "worker-1"
    assert what.startswith("has been computing (forward or backward) for ")
    assert " in round 20, and uses no CPU; worker-0" in what
    assert "at at_step_20 (faulty_tasks.py, line " in what
    kept = (run.folder.path / what.rpartition("see ")[2]).read_text()
    assert "in at_step_20" in kept
    assert "in train" in kept


def test_whoever_computes_is_named_later_and_said_to(runs: Path) -> None:
    run = train(runs, "ps-sync-tcp", "SpinsInForward", stall_after=0.3)
    ((role, what),) = stalls(run)
    assert role == "worker-1"
    assert what.startswith("has been computing (forward or backward) for ")
    assert float(what.split(" for ")[1].split()[0]) >= 6 * 0.3
    assert " % of a core; worker-0" in what


def test_a_batch_that_does_not_come_is_named_where_it_is_made(runs: Path) -> None:
    run = train(runs, "allreduce", "HangsInData")
    ((role, what),) = stalls(run)
    assert role == "worker-1"
    assert what.startswith("has been making its next batch for ")
    assert "; worker-0 waits for it" in what
    assert "at batch (faulty_tasks.py, line " in what


def test_one_that_is_not_ready_is_named(runs: Path) -> None:
    run = train(runs, "ps-sync-shm", "BuildsSlowly")
    ((role, what),) = stalls(run)
    assert role == "worker-1"
    assert what.startswith("has been building its model and data for ")
    assert "; worker-0 waits for it; at data (faulty_tasks.py, line " in what


def test_two_that_do_not_hear_each_other_are_named_together(runs: Path) -> None:
    inject = ["mute:worker-1-server-0@0.2s+1.4s"]
    run = train(runs, "ps-sync-tcp", servers=1, inject=inject)
    assert stalls(run)[0][1].startswith(
        "worker-1 and server-0 have been waiting for each other for "
    )
    assert "; worker-0 waits for them" in stalls(run)[0][1]


def test_a_script_is_named_where_it_is(runs: Path, tmp_path: Path) -> None:
    script = tmp_path / "mine.py"
    script.write_text(OWN_LOOP)
    spec = RunSpec(task="<python>:mine.py", strategy="ps-sync", workers=2, stall_after=AFTER)
    role, what = stalls(launch_script(spec, script, [], out=runs, echo=None))[-1]
    assert role == "worker-0"
    assert what.startswith("worker-0 and worker-1 have been in the script's own code for ")
    assert "at <module> (mine.py, line 11)" in what
