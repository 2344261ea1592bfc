"""Where nobody waits for anybody: killed and taken up again, every sample still counts once."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from faults_tools import ALL, Watch, harm, kill, task

import paceline
from paceline.errors import RoleDied
from paceline.store.folder import RunFolder

pytestmark = [pytest.mark.parallel, pytest.mark.timeout(60, method="signal")]

EPOCHS, BATCH = 12, 10


def asked(crew: str, **more: Any) -> dict[str, Any]:
    fields = {"task": task("Counting"), "epochs": EPOCHS, "lr": float(BATCH), "batch": BATCH}
    fields |= {"evaluate": "never", "threads": 1, "checkpoint_every": 0.1}
    return fields | ALL[crew] | more


def words(fields: dict[str, Any]) -> list[str]:
    return [w for k, v in fields.items() for w in (f"--{k.replace('_', '-')}", str(v))]


def counts(run: paceline.Run) -> Any:
    return run.parameters()["seen"]


def killed(command: Any, eventually: Callable[..., Any]) -> Path:
    """The folder of a launcher that is killed at some moment after its next checkpoint."""
    folder: Path = command.folder
    before = set(folder.glob("checkpoints/*/manifest.json"))
    eventually(lambda: set(folder.glob("checkpoints/*/manifest.json")) - before, 30, "a checkpoint")
    time.sleep(random.uniform(0, 0.3))  # the moment is what is tested
    os.kill(command.pid, signal.SIGKILL)
    command.wait(5)
    eventually(lambda: RunFolder(folder).state == "lost", 5, "lost")
    return folder


@pytest.mark.matrix(1)
@pytest.mark.parametrize("name", ["wide", "ps-async-shm", "ssp-shm", "ps-async-tcp", "ssp-tcp"])
def test_killed_and_resumed_every_sample_counts_once_an_epoch(
    name: str, cli: Any, eventually: Callable[..., Any]
) -> None:
    """That with a large model too, whose pushes are long: some shards have one, others do not."""
    wide = name == "wide"
    fields = asked("ps-async-shm", task=task("Wide"), epochs=4) if wide else asked(name)
    run = paceline.resume(killed(cli.start("run", *words(fields), "--quiet"), eventually))
    assert run.status == "done"
    assert [e["kind"] for e in run.summary["events"]] == ["resumed"]
    assert counts(run)[:: 4000 if wide else 1].eq(fields["epochs"]).all()


def recorded(run: paceline.Run) -> int:
    """Bytes of worker-1's steps."""
    return run.folder.steps_path("worker-1").stat().st_size


@pytest.mark.matrix(1)
@pytest.mark.parametrize("crew", ["ps-async-shm", "ps-async-tcp", "hogwild"])
def test_ctrl_c_then_a_killed_worker_and_more_epochs(
    crew: str, runs: Path, eventually: Callable[..., Any]
) -> None:
    """The next life of a worker goes on from what was taken up, and so does the book of leases."""
    with harm(runs, lambda pids: os.kill(os.getpid(), signal.SIGINT)):
        run = paceline.fit(out=runs, **asked(crew, checkpoint_every=1000.0))
    assert run.status == "stopped"
    assert "kept" in [e["kind"] for e in run.summary["events"]]
    taken = [role["steps"] for role in run.roles if role["role"].startswith("worker-")]
    assert min(taken) > 0

    before = recorded(run)

    def once_it_trains(_: dict[str, int]) -> None:
        eventually(lambda: run.folder.state == "running" and recorded(run) > before, 30, "steps")
        kill("worker-1")(Watch(runs).look())

    with harm(runs, once_it_trains):
        resumed = paceline.resume(run, epochs=EPOCHS + 1)
    assert resumed.status == "done"
    told = [(e["role"], e["kind"]) for e in resumed.summary["events"]]
    assert told[-2:] == [("worker-1", "died"), ("worker-1", "back")]
    if crew == "hogwild":  # two at once may lose one of their updates
        assert counts(resumed).mean() > EPOCHS - 1
    else:
        assert counts(resumed).eq(EPOCHS + 1).all()


@pytest.mark.matrix(1)
@pytest.mark.parametrize("crew", ["ps-async-shm", "ps-sync-shm"])
def test_a_worker_that_is_killed_in_its_first_step_comes_back(crew: str, runs: Path) -> None:
    """All parts are where they were by then, though no worker has told of a step yet."""
    dies = asked(crew, task=task("DiesGoingOn"), checkpoint_every=1000.0)
    with harm(runs, lambda pids: os.kill(os.getpid(), signal.SIGINT)):
        run = paceline.fit(out=runs, **dies)
    (run.dir / "dies").touch()
    resumed = paceline.resume(run)
    assert resumed.status == "done"
    told = [(e["role"], e["kind"]) for e in resumed.summary["events"]]
    assert told[-2:] == [("worker-1", "died"), ("worker-1", "back")]
    if crew == "ps-async-shm":
        assert counts(resumed).eq(EPOCHS).all()


@pytest.mark.matrix(1)
@pytest.mark.parametrize("crew", ["backup-shm", "backup-tcp"])
def test_with_backups_all_go_on_from_the_round_that_was_kept(crew: str, runs: Path) -> None:
    """Late gradients are dropped in any case, so no two runs are the same."""
    long = asked(crew, epochs=1000, checkpoint_every=0.2)

    def after_a_checkpoint(pids: dict[str, int]) -> None:
        while not list(runs.glob("*/checkpoints/*/manifest.json")):
            time.sleep(0.01)
        kill("worker-0")(pids)

    with (
        harm(runs, after_a_checkpoint, "worker-0"),
        pytest.raises(RoleDied, match=r"worker-0 .*was killed"),
    ):
        paceline.fit(out=runs, **long, max_restarts=0)
    folder = RunFolder.find(runs, "last")
    kept, _ = folder.checkpoints().last()
    assert kept is not None
    rounds = max(part.round for part in kept.parts) + 30
    run = paceline.resume(folder.path, steps=rounds)
    assert run.status == "done"
    servers = [role["steps"] for role in run.roles if role["role"].startswith("server-")]
    assert max(servers) >= rounds - 1
