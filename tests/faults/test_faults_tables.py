"""Deaths while sparse tables are trained: every row has every push once, as what is dense has."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from faults_tools import ALL, harm, kill, task
from torch import Tensor

import paceline
from paceline.store.folder import RunFolder

pytestmark = [pytest.mark.parallel, pytest.mark.timeout(60, method="signal")]

BATCH, SAMPLES, EPOCHS = 10, 400, 4
EXACT = ("ps-async-shm", "ps-async-tcp", "ssp-shm", "ssp-tcp")
IN_ROUNDS = ("ps-sync-shm", "ps-sync-tcp")


def asked(crew: str, **more: Any) -> dict[str, Any]:
    """Every sample adds 1 to its row in every epoch, by whichever worker."""
    rate = BATCH * (2 if crew in IN_ROUNDS else 1)
    fields = {"task": task("Rows"), "epochs": EPOCHS, "lr": float(rate), "batch": BATCH}
    return fields | {"evaluate": "never", "scale_lr": "none", "decay": "none"} | ALL[crew] | more


def train(runs: Path, crew: str, **more: Any) -> paceline.Run:
    run = paceline.fit(out=runs, **asked(crew, **more))
    assert run.status == "done"
    return run


def seen(run: paceline.Run) -> Tensor:
    counts: Tensor = run.parameters()["seen.weight"].flatten()
    return counts


def assert_sound(run: paceline.Run, crew: str, epochs: int = EPOCHS) -> None:
    counts = seen(run)
    if crew in IN_ROUNDS:  # a round that closed without somebody lacks its samples
        assert (counts < epochs - 0.5).sum() <= 2 * BATCH
        assert counts.max() <= epochs + 2
    else:
        assert counts.eq(epochs).all()
        # What is dense was pushed under the same names: each sample counts in it, too.
        assert run.parameters()["all"].item() == epochs * SAMPLES


@pytest.mark.matrix(1)
@pytest.mark.parametrize("crew", [*EXACT, *IN_ROUNDS])
def test_undisturbed_every_sample_counts_once_an_epoch(crew: str, runs: Path) -> None:
    counts = seen(train(runs, crew))
    assert counts.eq(EPOCHS).all()


@pytest.mark.matrix(1)
@pytest.mark.parametrize("crew", [*EXACT, *IN_ROUNDS])
def test_a_killed_worker_comes_back(crew: str, runs: Path) -> None:
    with harm(runs, kill("worker-1"), "worker-1"):
        run = train(runs, crew)
    told = [(event["role"], event["kind"]) for event in run.summary["events"]]
    assert told == [("worker-1", "died"), ("worker-1", "back")]
    assert_sound(run, crew)


@pytest.mark.matrix(1)
@pytest.mark.parametrize("crew", ["ps-sync-tcp", "ps-async-tcp", "ssp-tcp"])
def test_a_killed_server_comes_back_with_all_rows(crew: str, runs: Path) -> None:
    with harm(runs, kill("server-1"), "server-1"):
        run = train(runs, crew)
    told = [(event["role"], event["kind"]) for event in run.summary["events"]]
    assert told == [("server-1", "died"), ("server-1", "back")]
    assert seen(run).eq(EPOCHS).all()


@pytest.mark.matrix(1)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("crew", EXACT)
def test_kills_at_random_moments(crew: str, seed: int, runs: Path) -> None:
    rng = random.Random(f"{crew}/{seed}")

    def several(pids: dict[str, int]) -> None:
        names = [name for name in pids if name.startswith(("worker-", "server-"))]
        for _ in range(3):
            time.sleep(rng.uniform(0, 0.3))
            try:
                os.kill(pids[rng.choice(names)], signal.SIGKILL)
            except ProcessLookupError:  # killed before, and back under another number
                continue

    with harm(runs, several, "worker-0", "worker-1"):
        run = train(runs, crew, epochs=12)
    assert "died" in [event["kind"] for event in run.summary["events"]]
    assert_sound(run, crew, 12)


@pytest.mark.matrix(1)
@pytest.mark.parametrize("crew", [*EXACT, *IN_ROUNDS])
def test_a_run_is_taken_up_with_its_rows(crew: str, runs: Path) -> None:
    """Killed after a checkpoint; what was done since is done again, and counts once."""

    def after_a_checkpoint(pids: dict[str, int]) -> None:
        while not list(runs.glob("*/checkpoints/*/manifest.json")):
            time.sleep(0.01)
        kill("worker-0")(pids)

    with harm(runs, after_a_checkpoint, "worker-0"), pytest.raises(paceline.PacelineError):
        train(runs, crew, epochs=24, checkpoint_every=0.2, max_restarts=0)
    run = paceline.resume(RunFolder.find(runs, "last").path)
    assert run.status == "done"
    assert seen(run).eq(24).all()


@pytest.mark.thorough
@pytest.mark.parametrize("crew", ["ps-async-shm", "ps-sync-shm", "ps-sync-tcp"])
def test_workers_come_and_go(crew: str, runs: Path) -> None:
    def resize(pids: dict[str, int]) -> None:
        paceline.scale("last", workers=3, out=runs)
        paceline.scale("last", workers=1, out=runs)

    with harm(runs, resize, "worker-0", "worker-1"):
        run = train(runs, crew, epochs=40)
    counts = seen(run)
    if crew in IN_ROUNDS:  # shares of other sizes round otherwise
        torch.testing.assert_close(counts, torch.full_like(counts, 40), rtol=0, atol=1e-3)
    else:
        assert counts.eq(40).all()


@pytest.mark.thorough
def test_servers_of_tables_stay_as_many_as_they_are(runs: Path) -> None:
    refused: list[str] = []

    def resize(pids: dict[str, int]) -> None:
        try:
            paceline.scale("last", servers=1, out=runs)
        except paceline.PacelineError as wrong:
            refused.append(str(wrong))

    with harm(runs, resize, "worker-0", "server-0"):
        train(runs, "ps-async-tcp", epochs=12)
    assert "sparse tables" in refused[0]


LEARNING: dict[str, Any] = {
    "task": "sparse-logreg",
    "data": "clicks:3000",
    "features": 4000,
    "batch": 10,
    "optimizer": "adam",
    "lr": 0.01,
    "epochs": 12,  # a stop is heard while there is still something to do
    "evaluate": "end",
    "threads": 1,
}


@pytest.mark.matrix(1)
@pytest.mark.parametrize(
    "crew",
    [
        {"strategy": "single"},
        {"strategy": "independent", "workers": 2},
        {"strategy": "ps-sync", "workers": 2, "transport": "shm"},
        {"strategy": "ps-sync", "workers": 2, "transport": "tcp", "servers": 2},
    ],
    ids=lambda crew: "-".join(map(str, crew.values())),
)
def test_a_run_that_is_taken_up_is_the_run_that_was_never_stopped(
    crew: dict[str, Any], runs: Path
) -> None:
    """To the bit, with what the rule remembers of each row."""

    def stop_after_a_checkpoint(pids: dict[str, int]) -> None:
        while not list((runs / "stopped").glob("*/checkpoints/*/manifest.json")):
            time.sleep(0.005)
        os.kill(os.getpid(), signal.SIGINT)

    whole = paceline.fit(out=runs / "whole", **LEARNING, **crew, checkpoint_every=0.0)
    with harm(runs / "stopped", stop_after_a_checkpoint):
        run = paceline.fit(out=runs / "stopped", **LEARNING, **crew, checkpoint_every=0.15)
    assert run.status == "stopped"
    again = paceline.resume(run)
    assert again.status == "done"
    assert again.quality == whole.quality
    for name, values in whole.parameters().items():
        assert torch.equal(again.parameters()[name], values), name
