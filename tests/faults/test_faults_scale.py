"""Workers come and go while others die, and every sample still counts once an epoch."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from faults_tools import ALL, alive
from scale_tools import Held, beside, eventually
from torch import Tensor

import paceline
from paceline.errors import RunFailed

pytestmark = [pytest.mark.parallel, pytest.mark.timeout(60, method="signal")]

EPOCHS, BATCH, SAMPLES = 12, 10, 400
LEASING = ("ps-async-shm", "ps-async-tcp", "ssp-shm", "ssp-tcp")
IN_ROUNDS = ("ps-sync-shm", "ps-sync-tcp", "allreduce")
AVERAGING = ("local-sgd-shm", "local-sgd-tcp")


def train(runs: Path, crew: str, apart: int = 1, **more: Any) -> paceline.Run:
    """Every sample adds 1 to its number in every epoch, by whichever worker."""
    asked = {**ALL[crew], "workers": 2}
    pooled = asked["strategy"] in ("ps-sync", "allreduce")
    rate = float(BATCH * (2 if pooled else 1))
    fields = {"epochs": EPOCHS, "lr": rate, "evaluate": "never", "batch": BATCH}
    return paceline.fit(Held(runs.parent / "go", apart), out=runs, **(fields | asked | more))


def counted(run: paceline.Run, apart: int = 1) -> Tensor:
    seen: Tensor = run.parameters()["seen"]
    return seen[::apart]


def every_sample_counts(run: paceline.Run, apart: int = 1) -> None:
    assert run.status == "done"
    torch.testing.assert_close(
        counted(run, apart), torch.full((SAMPLES,), float(EPOCHS)), rtol=0, atol=1e-3
    )


def told(run: paceline.Run) -> list[tuple[str, str]]:
    return [(event["role"], event["kind"]) for event in run.summary["events"]]


def scale(workers: int) -> Callable[[Path], None]:
    return lambda folder: _scaled(folder, workers)


def _scaled(folder: Path, *workers: int) -> None:
    for count in workers:
        paceline.scale(folder, workers=count)


def pid_of(folder: Path, role: str) -> int:
    """Once it is born."""

    def look() -> int:
        roles = json.loads((folder / "roles.json").read_text())["roles"]
        return next((r["pid"] for r in roles if r["role"] == role), 0)

    return eventually(look, 10, f"a process of {role}")


@pytest.mark.matrix(2)
@pytest.mark.parametrize("crew", [*LEASING, *IN_ROUNDS])
def test_every_sample_counts_whoever_comes_and_goes(crew: str, runs: Path) -> None:
    with beside(runs, lambda folder: _scaled(folder, 3, 1, 2)):
        run = train(runs, crew)
    every_sample_counts(run)
    assert [kind for role, kind in told(run) if role == "worker-1"][-1] == "joined"


@pytest.mark.thorough
@pytest.mark.parametrize("crew", ["ps-async-tcp", "ps-async-shm", "ps-sync-tcp", "ps-sync-shm"])
def test_large_models_too(crew: str, runs: Path) -> None:
    with beside(runs, lambda folder: _scaled(folder, 4, 1)):
        run = train(runs, crew, apart=3000)
    every_sample_counts(run, apart=3000)


@pytest.mark.matrix(1)
@pytest.mark.parametrize("crew", [*AVERAGING, "hogwild"])
def test_where_counts_are_means(crew: str, runs: Path) -> None:
    """An averaging weighs by samples, and two at once may lose an update of hogwild's."""
    with beside(runs, lambda folder: _scaled(folder, 3, 1, 2)):
        run = train(runs, crew)
    assert run.status == "done"
    assert counted(run).mean() > (EPOCHS / 4 if crew in AVERAGING else EPOCHS / 2)
    kinds = [kind for _, kind in told(run)]
    assert kinds.count("joined") == 2
    assert kinds.count("left") == 2


@pytest.mark.matrix(2)
@pytest.mark.parametrize("crew", [*LEASING, *IN_ROUNDS, "local-sgd-shm", "hogwild"])
@pytest.mark.parametrize("role", ["worker-0", "worker-1"])
def test_a_worker_that_is_told_to_end_leaves(crew: str, role: str, runs: Path) -> None:
    def act(folder: Path) -> None:
        pid = pid_of(folder, role)
        os.kill(pid, signal.SIGTERM)
        eventually(lambda: not alive([pid]), 10)

    with beside(runs, act):
        run = train(runs, crew, max_restarts=0)
    assert (role, "left") in told(run)
    assert not run.summary["faults"] or all(f["what"] == "left" for f in run.summary["faults"])
    if crew in (*LEASING, *IN_ROUNDS):
        every_sample_counts(run)


def test_one_alone_that_is_told_to_end_stops_the_run(runs: Path) -> None:
    def act(folder: Path) -> None:
        os.kill(pid_of(folder, "worker-0"), signal.SIGTERM)

    with beside(runs, act):
        run = train(runs, "ps-sync-shm", workers=1, epochs=1000)
    assert run.status == "stopped"
    assert ("worker-0", "notice") in told(run)


@pytest.mark.matrix(2)
@pytest.mark.parametrize("crew", [*LEASING, *IN_ROUNDS])
@pytest.mark.parametrize("wait", [0.0, 0.1, 0.3])
def test_a_killed_joiner_comes_all_the_same(crew: str, wait: float, runs: Path) -> None:
    def act(folder: Path) -> None:
        def strike() -> None:
            pid = pid_of(folder, "worker-2")
            time.sleep(wait)
            os.kill(pid, signal.SIGKILL)

        striking = threading.Thread(target=strike, daemon=True)
        striking.start()
        paceline.scale(folder, workers=3)
        striking.join(10)

    with beside(runs, act):
        run = train(runs, crew)
    assert run.status == "done"
    assert ("worker-2", "joined") in told(run)
    if crew in (*LEASING, "allreduce"):
        every_sample_counts(run)


def test_a_joiner_that_cannot_come_does_not_end_the_run(runs: Path) -> None:
    def act(folder: Path) -> None:
        def strike() -> None:
            os.kill(pid_of(folder, "worker-2"), signal.SIGKILL)

        striking = threading.Thread(target=strike, daemon=True)
        striking.start()
        with pytest.raises(RunFailed, match="worker-2 could not join: it was killed"):
            paceline.scale(folder, workers=3)
        striking.join(10)

    with beside(runs, act):
        run = train(runs, "ps-sync-shm", max_restarts=0)
    every_sample_counts(run)


@pytest.mark.matrix(1)
@pytest.mark.parametrize("crew", [*LEASING, *IN_ROUNDS])
def test_a_killed_leaver_is_gone_all_the_same(crew: str, runs: Path) -> None:
    def act(folder: Path) -> None:
        pid = pid_of(folder, "worker-1")
        os.kill(pid, signal.SIGSTOP)  # so that it dies before it has left
        asked = threading.Thread(target=scale(1), args=(folder,), daemon=True)
        asked.start()
        eventually(lambda: list(folder.glob("scaling/1.answer.json")), 5)
        os.kill(pid, signal.SIGKILL)
        asked.join(20)

    with beside(runs, act):
        run = train(runs, crew)
    assert run.status == "done"
    assert ("worker-1", "left") in told(run)
    if crew in (*LEASING, "allreduce"):
        every_sample_counts(run)


def test_a_request_outlives_whoever_made_it(runs: Path) -> None:
    def act(folder: Path) -> None:
        command = [sys.executable, "-m", "paceline.cli", "scale", str(folder), "--workers", "3"]
        verb = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        eventually(lambda: list(folder.glob("scaling/1.json")), 10)
        verb.kill()
        verb.wait()
        pid_of(folder, "worker-2")
        paceline.scale(folder, workers=1)  # waits its turn

    with beside(runs, act):
        run = train(runs, "ps-async-shm")
    every_sample_counts(run)
    assert [kind for _, kind in told(run)].count("scaled") == 2


def test_requests_at_once_are_done_one_after_the_other(runs: Path) -> None:
    def act(folder: Path) -> None:
        threads = [
            threading.Thread(target=scale(count), args=(folder,), daemon=True)
            for count in (3, 1, 2)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert len(list(folder.glob("scaling/*.answer.json"))) == 3

    with beside(runs, act):
        run = train(runs, "ps-sync-shm")
    every_sample_counts(run)


# Servers.

SERVED = ("ps-sync-tcp", "ps-async-tcp", "ssp-tcp")


def servers(folder: Path, *counts: int) -> None:
    for count in counts:
        paceline.scale(folder, servers=count)


@pytest.mark.matrix(1)
@pytest.mark.parametrize("apart", [1, 4000])
@pytest.mark.parametrize("crew", SERVED)
def test_every_sample_counts_however_the_parameters_are_cut(
    crew: str, apart: int, runs: Path
) -> None:
    with beside(runs, lambda folder: servers(folder, 3, 1, 2)):
        run = train(runs, crew, apart)
    every_sample_counts(run, apart)
    assert [kind for _, kind in told(run)].count("recut") == 3


@pytest.mark.thorough
def test_coded_gradients_are_not_split(runs: Path) -> None:
    with beside(runs, lambda folder: servers(folder, 3, 1)):
        run = train(runs, "ps-sync-tcp", 4000, codec="bf16")
    assert run.status == "done"
    seen = counted(run, 4000)
    assert (seen - EPOCHS).abs().max() < 0.2


def test_workers_and_servers_at_once(runs: Path) -> None:
    with beside(runs, _both):
        run = train(runs, "ps-sync-tcp")
    every_sample_counts(run)


def _both(folder: Path) -> None:
    said = paceline.scale(folder, workers=3, servers=1)
    assert said[0].startswith("the parameters are cut for 1 server after")
    assert said[1].startswith("worker-2 joined at round")


@pytest.mark.matrix(1)
@pytest.mark.parametrize("role", ["server-0", "server-1", "server-2"])
@pytest.mark.parametrize("wait", [0.0, 0.02, 0.1])
def test_a_server_that_is_killed_while_shards_move(role: str, wait: float, runs: Path) -> None:
    def act(folder: Path) -> None:
        def strike() -> None:
            eventually(lambda: list(folder.glob("scaling/1.answer.json")), 10)
            time.sleep(wait)
            pid = pid_of(folder, role)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

        striking = threading.Thread(target=strike, daemon=True)
        striking.start()
        paceline.scale(folder, servers=3)
        striking.join(10)

    with beside(runs, act):
        run = train(runs, "ps-async-tcp", 2000)
    every_sample_counts(run, 2000)


@pytest.mark.matrix(1)
@pytest.mark.parametrize("role", ["worker-0", "worker-1"])
def test_a_worker_that_is_killed_while_shards_move(role: str, runs: Path) -> None:
    def act(folder: Path) -> None:
        pid = pid_of(folder, role)
        asked = threading.Thread(target=servers, args=(folder, 3), daemon=True)
        asked.start()
        eventually(lambda: list(folder.glob("scaling/1.answer.json")), 10)
        os.kill(pid, signal.SIGKILL)
        asked.join(20)

    with beside(runs, act):
        run = train(runs, "ps-async-tcp", 2000)
    every_sample_counts(run, 2000)
