"""Workers come and go, and the result is that of one worker with the whole batch, to 1e-5."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from contract_tasks import Net
from torch import Tensor, nn

import paceline
from paceline.errors import RequestError
from paceline.store.folder import RunFolder

pytestmark = [pytest.mark.parallel, pytest.mark.timeout(60, method="signal")]

STEPS, BATCH = 200, 8
SMALL, LARGE, LARGER = 16, 14_000, 110_000  # served in shards; and gradients stay where they are

IN_STEP: dict[str, dict[str, Any]] = {
    "ps-sync-small": {"strategy": "ps-sync", "transport": "shm"},
    "ps-sync-large": {"strategy": "ps-sync", "transport": "shm", "width": LARGE},
    "ps-sync-larger": {"strategy": "ps-sync", "transport": "shm", "width": LARGER},
    "ps-sync-tcp": {"strategy": "ps-sync", "transport": "tcp", "servers": 2},
    "allreduce": {"strategy": "allreduce"},
}


class Held(Net):
    """Takes its time until it is let go, so that a run is not over before it was resized."""

    def __init__(self, go: Path, width: int = SMALL) -> None:
        super().__init__(203, width)
        self.go = go

    def loss(self, model: nn.Module, batch: Any) -> Tensor:
        if not self.go.exists():
            time.sleep(0.03)
        return super().loss(model, batch)


class Resizes(threading.Thread):
    """Asks a run for one number of workers after the other, and then lets it go on quickly."""

    def __init__(self, runs: Path, go: Path, workers: tuple[int, ...]) -> None:
        super().__init__(daemon=True)
        self._runs, self._go, self._workers = runs, go, workers
        self.done: list[str] = []
        self.wrong: Exception | None = None

    def run(self) -> None:
        try:
            while not list(self._runs.glob("[!.]*/steps/*.steps")):
                time.sleep(0.01)
            for workers in self._workers:
                self.done += paceline.scale("last", workers=workers, out=self._runs)
        except Exception as wrong:  # noqa: BLE001  told by the one who waits
            self.wrong = wrong
        finally:
            self._go.touch()


@contextmanager
def resizes(runs: Path, *workers: int) -> Iterator[Resizes]:
    thread = Resizes(runs, runs.parent / "go", workers)
    thread.start()
    try:
        yield thread
    finally:
        thread.join(20)
    if thread.wrong is not None:
        raise thread.wrong


def trained(runs: Path, width: int, **how: Any) -> paceline.Run:
    rate = 0.05 if width == SMALL else 0.001
    task = Held(runs.parent / "go", width)
    fields = {
        "steps": STEPS if width < LARGER else STEPS // 2,
        "lr": rate,
        "optimizer": "momentum",
        "evaluate": "never",
        "seed": 3,
    }
    return paceline.fit(task, out=runs, **(fields | how))


@pytest.mark.matrix(1)
@pytest.mark.parametrize("how", IN_STEP)
def test_many_that_come_and_go_are_one(how: str, runs: Path) -> None:
    crew = {"width": SMALL, **IN_STEP[how]}
    with resizes(runs, 3, 1, 2) as asked:
        many = trained(runs, batch=BATCH, workers=2, **crew)
    one = trained(runs, batch=BATCH * 2, strategy="single", width=crew["width"])
    ours, theirs = many.parameters(), one.parameters()
    for name, value in ours.items():
        torch.testing.assert_close(value, theirs[name], rtol=0, atol=1e-5)
    assert asked.done[0].startswith("worker-2 joined at round ")
    assert asked.done[-1].startswith("worker-1 joined at round ")
    told = [(event["role"], event["kind"]) for event in many.summary["events"]]
    moves = [one for one in told if one[1] in ("joined", "left")]
    assert moves[0] == ("worker-2", "joined")
    assert sorted(moves[1:3]) == [("worker-1", "left"), ("worker-2", "left")]
    assert moves[3:] == [("worker-1", "joined")]
    assert "worker-2" in {role["role"] for role in many.roles}


@pytest.mark.thorough
@pytest.mark.parametrize("transport", ["shm", "tcp"])
def test_shares_by_speed(transport: str, runs: Path) -> None:
    with resizes(runs, 3, 1):
        many = trained(
            runs, SMALL, batch=BATCH, workers=2, balance=True, strategy="ps-sync",
            transport=transport,
        )  # fmt: skip
    one = trained(runs, SMALL, batch=BATCH * 2, strategy="single")
    for name, value in many.parameters().items():
        torch.testing.assert_close(value, one.parameters()[name], rtol=0, atol=1e-5)


def test_scores_go_on_with_whoever_is_there(runs: Path) -> None:
    with resizes(runs, 3, 1):
        run = trained(
            runs, SMALL, batch=BATCH, workers=2, strategy="ps-sync", transport="shm",
            evaluate="epoch",
        )  # fmt: skip
    scores = run.folder.scores()
    assert [score.epoch for score in scores if not score.final] == [*range(1, STEPS // 13 + 1)]
    assert all(score.count == 50 for score in scores)


REFUSED: dict[str, tuple[dict[str, Any], int, str]] = {
    "single": ({"strategy": "single"}, 2, "'single' share nothing"),
    "independent": ({"strategy": "independent", "workers": 2}, 3, "'independent' share nothing"),
    "too many": ({"strategy": "ps-async", "workers": 2}, 10_000, "room for"),
    "none": ({"strategy": "ps-async", "workers": 2}, 0, "at least 1"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_is_refused_and_the_run_goes_on(what: str, runs: Path) -> None:
    crew, workers, why = REFUSED[what]
    with pytest.raises(RequestError, match=why), resizes(runs, workers):
        run = trained(runs, SMALL, batch=BATCH, **crew)
    assert run.status == "done"


def test_a_run_that_is_over_is_not_scaled(runs: Path) -> None:
    (runs.parent / "go").touch()
    run = trained(runs, SMALL, batch=BATCH, strategy="single")
    with pytest.raises(RequestError, match="is done: only a run that is under way"):
        paceline.scale(run, workers=2)
    assert not (RunFolder.find(runs, "last").path / "scaling").exists()
