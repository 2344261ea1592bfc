"""Shares by speed change who computes what, and nothing of what comes out."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from contract_tasks import Net, role
from torch import Tensor, nn
from torch.testing import assert_close

import paceline
from paceline.store.steps import read_steps

pytestmark = [pytest.mark.parallel, pytest.mark.timeout(60, method="signal")]

BATCH, WORKERS = 16, 3
WHOLE = BATCH * WORKERS
WAYS: list[dict[str, Any]] = [
    {"strategy": "ps-sync", "transport": "shm"},
    {"strategy": "ps-sync", "transport": "shm", "servers": 1},
    {"strategy": "ps-sync", "transport": "tcp"},
    {"strategy": "ps-sync", "transport": "tcp", "servers": 2},
    {"strategy": "allreduce"},
]


def called(how: dict[str, Any]) -> str:
    return "-".join(str(value) for value in how.values())


class Unequal(Net):
    """Sleeps `nap` seconds a sample; one worker three times as long, another after `turn` steps."""

    def __init__(
        self, samples: int, width: int = 16, turn: int | None = None, nap: float = 0.0002
    ) -> None:
        super().__init__(samples, width)
        self.turn = turn
        self.nap = nap
        self.taken = 0

    def loss(self, model: nn.Module, batch: Any) -> Tensor:
        self.taken += 1
        turned = self.turn is not None and self.taken > self.turn
        slow = role() == ("worker-0" if turned else "worker-1")
        time.sleep(len(batch[0]) * self.nap * (3 if slow else 1))
        return super().loss(model, batch)


def run(task: Net, out: Path, **how: Any) -> Any:
    usual = {"lr": 0.05, "optimizer": "momentum", "evaluate": "never", "seed": 3}
    done = paceline.fit(task, out=out, **{**usual, **how})
    assert done.status == "done"
    return done


def shares(done: Any) -> np.ndarray:
    """Samples by worker and round."""
    steps = [read_steps(done.folder.steps_path(f"worker-{w}")) for w in range(WORKERS)]
    return np.array([one["samples"].astype(int) for one in steps])


@pytest.mark.matrix(2)
@pytest.mark.parametrize(
    ("how", "width"),
    [*((how, 16) for how in WAYS), *((how, 20_000) for how in WAYS[:2])],
    ids=lambda value: called(value) if isinstance(value, dict) else None,
)
def test_shares_that_change_make_the_same_parameters(
    how: dict[str, Any], width: int, runs: Path
) -> None:
    """2,000 samples leave 32 for the last of 42 rounds; and the slow worker is another from 20 on.

    Over shared memory a large model's shards are applied by their owners, a small one's by all.
    """
    task, size = Unequal(2000, width, turn=20), {"steps": 44, "lr": 0.05 if width < 99 else 1e-4}
    many = run(task, runs, workers=WORKERS, batch=BATCH, balance=True, **size, **how)
    one = run(Net(2000, width), runs, strategy="single", batch=WHOLE, **size)
    taken = shares(many)
    assert_close(many.parameters(), one.parameters(), rtol=0, atol=1e-5)
    assert (taken.sum(axis=0) == [WHOLE] * 41 + [32] + [WHOLE] * 2).all()
    assert len(np.unique(taken, axis=1).T) > 4, "they did not change"
    assert taken[:, [*range(41), 42, 43]].min() >= 1


@pytest.mark.thorough
@pytest.mark.parametrize("how", [WAYS[0], WAYS[3]], ids=called)
def test_gradients_that_leave_while_they_are_made(how: dict[str, Any], runs: Path) -> None:
    """Of a million parameters blocks leave, or stay where backward left them, in uneven parts.

    Naps are long beside the computing: of workers that share cores, those that only compute may be
    equally slow all the time.
    """
    size = {"steps": 12, "lr": 1e-4}
    task = Unequal(2000, 120_000, turn=6, nap=0.002)
    many = run(task, runs, workers=WORKERS, batch=BATCH, balance=True, **size, **how)
    one = run(Net(2000, 120_000), runs, strategy="single", batch=WHOLE, **size)
    assert_close(many.parameters(), one.parameters(), rtol=0, atol=1e-5)
    taken = shares(many)
    assert (taken.sum(axis=0) == WHOLE).all()
    assert len(np.unique(taken, axis=1).T) > 1, "they did not change"


@pytest.mark.matrix(2)
@pytest.mark.parametrize("how", WAYS, ids=called)
def test_the_slow_has_the_smaller_share_and_it_follows(how: dict[str, Any], runs: Path) -> None:
    task = Unequal(4000, turn=30)
    done = run(task, runs, workers=WORKERS, batch=BATCH, balance=True, steps=60, **how)
    taken = shares(done)
    before, after = taken[:, 10:30].mean(axis=1), taken[:, 45:].mean(axis=1)
    assert before[1] < 0.7 * BATCH < min(before[0], before[2])
    assert after[0] < 0.7 * BATCH < min(after[1], after[2])
    told = [role["share"] for role in done.roles[:WORKERS]]
    assert [one["last"] for one in told] == pytest.approx(taken[:, -1] / WHOLE)
    assert [one["mean"] for one in told] == pytest.approx(taken.sum(axis=1) / taken.sum())


def test_a_large_share_goes_in_even_parts(tmp_path: Path, runs: Path) -> None:
    """One worker is far faster: it takes at most two batches at once."""

    class Noting(Net):
        def loss(self, model: nn.Module, batch: Any) -> Tensor:
            if role() == "worker-0":
                with (tmp_path / "parts").open("a") as file:
                    file.write(f"{len(batch[0])}\n")
            else:
                time.sleep(len(batch[0]) * 0.002)
            return super().loss(model, batch)

    how = {"strategy": "ps-sync", "workers": 4, "batch": 8, "balance": True, "steps": 12}
    done = run(Noting(800), runs, **how)
    parts = [int(line) for line in (tmp_path / "parts").read_text().split()]
    rounds = read_steps(done.folder.steps_path("worker-0"))["samples"]
    assert rounds[-1] > 16
    assert max(parts) <= 16
    assert sum(parts) == rounds.sum()
    assert parts[-1] - parts[-2] in (0, 1)


def test_with_accumulation_and_a_codec(runs: Path) -> None:
    """bf16 loses a little, so these are only alike."""
    how = {"strategy": "ps-sync", "codec": "bf16", "workers": WORKERS, "batch": 8, "steps": 30}
    many = run(Unequal(2000), runs, accumulate=2, balance=True, **how)
    one = run(Net(2000), runs, strategy="single", batch=WHOLE, steps=30)
    assert (shares(many).sum(axis=0) == WHOLE).all()
    assert_close(many.parameters(), one.parameters(), rtol=0, atol=0.02)
