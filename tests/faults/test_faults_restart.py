"""kill -9 of a worker: the others go on, it comes back, and every sample counts once."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from faults_tools import ALL, Watch, alive, harm, kill, task
from torch import Tensor

import paceline
from paceline.errors import RoleDied
from paceline.store.steps import read_steps
from paceline.transport import memory

pytestmark = [pytest.mark.parallel, pytest.mark.timeout(60, method="signal")]

REJOINING = (
    *("ps-sync-tcp", "ps-async-tcp", "ssp-tcp", "backup-tcp"),
    *("ps-async-shm", "ssp-shm", "hogwild"),
)
BATCH, SAMPLES = 10, 400


def counted(run: paceline.Run) -> Tensor:
    seen: Tensor = run.parameters()["seen"]
    return seen


def train(runs: Path, crew: str, **more: Any) -> paceline.Run:
    """Every sample adds 1 to its number in every epoch, by whichever worker."""
    asked = ALL[crew]
    in_rounds = asked["strategy"] == "ps-sync"
    rate = BATCH * (asked["workers"] if in_rounds else 1)
    fields = {"epochs": 4, "lr": float(rate), "evaluate": "never", "batch": BATCH}
    return paceline.fit(task("Counting"), out=runs, **(fields | asked | more))


@pytest.mark.matrix(3)
@pytest.mark.parametrize(
    ("crew", "role"),
    [(crew, f"worker-{number % 2}") for number, crew in enumerate(REJOINING)]
    + [("ps-sync-tcp", "worker-1"), ("ps-async-shm", "worker-1")],
)
def test_a_killed_worker_comes_back(crew: str, role: str, runs: Path) -> None:
    with harm(runs, kill(role), role) as watch:
        run = train(runs, crew)
    assert run.status == "done"
    assert not alive([*watch.pids.values()])
    told = [(event["role"], event["kind"]) for event in run.summary["events"]]
    assert (role, "died") in told
    assert (role, "back") in told
    seen = counted(run)
    if crew == "backup-tcp":  # what comes late is dropped in any case
        assert seen.gt(0).any()
    elif ALL[crew]["strategy"] == "ps-sync":
        # A round that closed without it lacks its samples; those it had count for a little more.
        missing = (seen < 3.5).sum().item()
        assert missing <= 2 * BATCH
        assert seen.max() <= 4 + ALL[crew]["workers"]
    elif crew == "hogwild":  # two at once may lose one of their updates
        assert seen.mean() > 3
    else:
        assert seen.eq(4).all()


@pytest.mark.matrix(2)
@pytest.mark.parametrize("crew", ["ps-sync-tcp", "ps-async-tcp", "ssp-tcp", "backup-tcp"])
def test_a_killed_server_comes_back_with_all_it_had_answered(crew: str, runs: Path) -> None:
    with harm(runs, kill("server-0"), "server-0"):
        run = train(runs, crew)
    assert run.status == "done"
    told = [(event["role"], event["kind"]) for event in run.summary["events"]]
    assert told == [("server-0", "died"), ("server-0", "back")]
    if crew != "backup-tcp":
        assert counted(run).eq(4).all()


@pytest.mark.matrix(1)
@pytest.mark.parametrize("crew", ["ps-async-tcp", "ps-sync-tcp"])
def test_a_server_that_is_stopped_for_too_long_is_replaced(crew: str, runs: Path) -> None:
    """It would go on where another is by then, so it is ended first."""
    with harm(runs, lambda pids: os.kill(pids["server-0"], signal.SIGSTOP), "server-0"):
        run = train(runs, crew, lease=0.5)
    assert run.status == "done"
    told = [(event["role"], event["kind"]) for event in run.summary["events"]]
    assert told == [("server-0", "frozen"), ("server-0", "died"), ("server-0", "back")]
    assert counted(run).eq(4).all()


@pytest.mark.matrix(2)
@pytest.mark.parametrize(
    ("crew", "apart"),
    [("ps-sync-tcp", 0.05), ("ps-async-tcp", 0.0), ("ps-async-tcp", 0.15), ("ssp-tcp", 0.05)],
)
def test_a_worker_and_a_server_die_one_after_the_other(crew: str, apart: float, runs: Path) -> None:
    """While the worker comes back, the server may be gone, or on its way back too."""

    def both(pids: dict[str, int]) -> None:
        os.kill(pids["worker-0"], signal.SIGKILL)
        time.sleep(apart)
        os.kill(pids["server-0"], signal.SIGKILL)

    with harm(runs, both, "worker-0", "server-0"):
        run = train(runs, crew)
    assert run.status == "done"
    if crew != "ps-sync-tcp":
        assert counted(run).eq(4).all()


def test_what_an_update_rule_remembers_comes_back_too(runs: Path) -> None:
    fields = {"strategy": "ps-sync", "transport": "tcp", "workers": 2, "steps": 60, "lr": 0.01}
    fields |= {"optimizer": "adam", "evaluate": "never"}
    calm = paceline.fit(task("Patient"), out=runs / "calm", **fields)
    with harm(runs / "harmed", kill("server-0"), "server-0"):
        harmed = paceline.fit(task("Patient"), out=runs / "harmed", **fields)
    assert [event["kind"] for event in harmed.summary["events"]] == ["died", "back"]
    for name, values in calm.parameters().items():
        torch.testing.assert_close(harmed.parameters()[name], values, rtol=0, atol=1e-6)


def test_without_the_death_every_sample_counts_once_an_epoch(runs: Path) -> None:
    for crew in ("ps-sync-tcp", "ps-async-tcp", "ssp-tcp", "ps-async-shm"):
        assert counted(train(runs, crew)).eq(4).all()


@pytest.mark.matrix(1)
@pytest.mark.parametrize("crew", ["ps-sync-tcp", "ps-async-tcp", "ps-async-shm"])
def test_it_dies_again_and_again(crew: str, runs: Path) -> None:
    def again_and_again(pids: dict[str, int]) -> None:
        over = time.monotonic() + 20
        threading.Thread(target=_keep_killing, args=(runs, "worker-1", 3, over)).start()

    with harm(runs, again_and_again):
        run = train(runs, crew, epochs=8)
    died = [event for event in run.summary["events"] if event["kind"] == "died"]
    assert len(died) == 3
    if crew != "ps-sync-tcp":
        assert counted(run).eq(8).all()


def _keep_killing(runs: Path, role: str, times: int, over: float) -> None:
    """Kill each life of a role once it is up."""
    killed: set[int] = set()
    while len(killed) < times and time.monotonic() < over:
        time.sleep(0.02)
        pid = Watch(runs).look().get(role)
        if pid and pid not in killed:
            time.sleep(0.05)
            killed.add(pid)
            os.kill(pid, signal.SIGKILL)


def test_one_death_too_many_ends_the_run(runs: Path) -> None:
    def both(pids: dict[str, int]) -> None:
        threading.Thread(
            target=_keep_killing, args=(runs, "worker-1", 2, time.monotonic() + 20)
        ).start()

    with harm(runs, both), pytest.raises(RoleDied, match="worker-1 was killed by signal 9"):
        train(runs, "ps-async-tcp", epochs=1000, max_restarts=1)


def test_a_frozen_worker_is_not_waited_for_longer_than_its_lease(runs: Path) -> None:
    def freeze(pids: dict[str, int]) -> None:
        os.kill(pids["worker-1"], signal.SIGSTOP)

    with harm(runs, freeze):
        run = train(runs, "ps-async-tcp", lease=0.5)
    told = [event["kind"] for event in run.summary["events"]]
    assert told == ["frozen", "died", "back"]
    assert counted(run).eq(4).all()


def test_a_worker_that_thaws_in_time_goes_on_as_if_nothing_had_been(runs: Path) -> None:
    def freeze_a_little(pids: dict[str, int]) -> None:
        os.kill(pids["worker-1"], signal.SIGSTOP)
        time.sleep(0.7)  # long enough to be seen
        os.kill(pids["worker-1"], signal.SIGCONT)

    with harm(runs, freeze_a_little):
        run = train(runs, "ps-sync-tcp", epochs=12, lease=20.0)
    assert [e["kind"] for e in run.summary["events"] if e["kind"] != "thawed"] == ["frozen"]
    assert counted(run).eq(12).all()


def test_a_server_whose_memory_goes_with_it_is_not_replaced_by_an_empty_one(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And how many updates went with it is said to the last one that was answered."""
    monkeypatch.setattr(memory, "available", lambda: False)
    with (
        harm(runs, kill("server-0"), "server-0"),
        pytest.raises(RoleDied, match=r"server-0 was killed .* no memory .* are lost") as ended,
    ):
        train(runs, "ps-async-tcp", epochs=1000, servers=1)
    (folder,) = runs.iterdir()
    steps = [read_steps(folder / "steps" / f"worker-{worker}.steps") for worker in range(2)]
    last = max(int(taken["version"][-1]) for taken in steps)
    assert f": the {last:,} updates that it had answered are lost" in str(ended.value)
