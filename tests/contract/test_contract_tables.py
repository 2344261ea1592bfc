"""Sparse tables: a user's model with some of both trains as plain torch does; few rows travel."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import paceline
from paceline.data.arrays import Arrays
from paceline.data.base import Data
from paceline.data.sampler import Order

pytestmark = [pytest.mark.parallel, pytest.mark.timeout(60, method="signal")]

SAMPLES, WORDS, WIDTH, LONG = 203, 50, 3, 4
STEPS, BATCH = 40, 8
RATES = {"sgd": 0.5, "adagrad": 0.1, "adam": 0.02}


class Mixed(paceline.Task):
    """The mean of some words' vectors, and a perceptron on top: dense and sparse parameters."""

    def model(self) -> nn.Module:
        torch.manual_seed(5)
        bag = nn.EmbeddingBag(WORDS, WIDTH, mode="mean", sparse=True)
        return nn.Sequential(bag, nn.Linear(WIDTH, 5), nn.Tanh(), nn.Linear(5, 2))

    def data(self) -> Data:
        rng = np.random.default_rng(4)
        words = (WORDS * rng.random((SAMPLES, LONG)) ** 3).astype(np.int64)
        labels = (words.sum(1) > 45).astype(np.int64)
        return Data(train=Arrays(words, labels), test=Arrays(words, labels), classes=2)


@cache
def plain(rule: str, batch: int) -> dict[str, Tensor]:
    """The same in torch alone."""
    task = Mixed()
    model, data = task.model(), task.data()
    sparse, dense = [model[0].weight], [p for n, p in model.named_parameters() if n != "0.weight"]
    lr = RATES[rule]
    kinds: dict[str, list[torch.optim.Optimizer]] = {
        "sgd": [torch.optim.SGD(model.parameters(), lr)],
        "adagrad": [torch.optim.Adagrad(model.parameters(), lr)],
        "adam": [torch.optim.SparseAdam(sparse, lr), torch.optim.Adam(dense, lr)],
    }
    order = Order(SAMPLES, 3)
    rounds = -(-SAMPLES // batch)
    for step in range(STEPS):
        epoch, turn = divmod(step, rounds)
        batch_ = data.train.batch(order.rows(epoch, turn * batch, min(SAMPLES, (turn + 1) * batch)))
        for optimizer in kinds[rule]:
            optimizer.zero_grad()
        task.loss(model, batch_).backward()
        for optimizer in kinds[rule]:
            optimizer.step()
    return {name: value.detach().clone() for name, value in model.state_dict().items()}


def trained(out: Path, rule: str, **how: Any) -> paceline.Run:
    run = paceline.fit(
        Mixed(),
        optimizer=rule,
        lr=RATES[rule],
        scale_lr="none",
        decay="none",
        steps=STEPS,
        seed=3,
        out=out,
        **({"batch": BATCH} | how),
    )
    assert run.status == "done"
    return run


def assert_same(ours: dict[str, Tensor], theirs: dict[str, Tensor], within: float) -> None:
    assert ours.keys() == theirs.keys()
    for name, value in ours.items():
        torch.testing.assert_close(value, theirs[name], rtol=0, atol=within)


# A step in parts, as where one has taken on another's share: the gradients of rows are added up.
PARTS: dict[str, Any] = {"strategy": "ps-sync", "workers": 2, "transport": "shm", "accumulate": 2}
CREWS = [
    {"strategy": "single", "batch": 2 * BATCH},
    {"strategy": "ps-sync", "workers": 2, "transport": "shm"},
    {"strategy": "ps-sync", "workers": 2, "transport": "tcp"},
    {"strategy": "ps-sync", "workers": 2, "transport": "tcp", "servers": 3},
]


def called(how: dict[str, Any]) -> str:
    return "-".join(str(value) for value in how.values())


@pytest.mark.matrix(6)
@pytest.mark.parametrize("rule", RATES)
@pytest.mark.parametrize("how", CREWS, ids=called)
def test_a_mixed_model_trains_as_in_torch(how: dict[str, Any], rule: str, runs: Path) -> None:
    run = trained(runs, rule, evaluate="never", **how)
    assert_same(run.parameters(), plain(rule, 2 * BATCH), 1e-5)


@pytest.mark.matrix(1)
@pytest.mark.parametrize(
    "how",
    [
        {"strategy": "ps-async", "transport": "shm"},
        {"strategy": "ps-async", "transport": "tcp", "servers": 2},
        {"strategy": "ssp", "transport": "shm", "bound": 2},
        {"strategy": "ssp", "transport": "tcp", "bound": 2},
        {"strategy": "hogwild"},
    ],
    ids=called,
)
def test_those_that_do_not_wait_learn_too(how: dict[str, Any], runs: Path) -> None:
    run = trained(runs, "adagrad", workers=2, **(how | {"batch": BATCH}))
    assert set(run.parameters()) == set(plain("adagrad", BATCH))
    assert run.quality["accuracy"] > 0.6


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"strategy": "allreduce", "workers": 2}, "has no sparse tables"),
        ({"optimizer": "lamb"}, "no form for sparse tables"),
        ({"strategy": "ps-sync", "workers": 2, "transport": "tcp", "replicas": 1}, "--replicas"),
        ({"evaluator": True}, "--evaluator"),
    ],
)
def test_what_cannot_be_is_refused(how: dict[str, Any], why: str, runs: Path) -> None:
    with pytest.raises(paceline.PacelineError, match=why):
        paceline.fit(Mixed(), steps=2, out=runs, **({"optimizer": "sgd"} | how))


LOGREG: dict[str, Any] = {
    "task": "sparse-logreg",
    "data": "clicks:1000",
    "features": 5000,
    "scale_lr": "none",
    "decay": "none",
    "lr": 0.1,
    "epochs": 2,
}


@pytest.mark.matrix(2)
@pytest.mark.parametrize("rule", ["adagrad", "ftrl"])
@pytest.mark.parametrize("how", [*CREWS, PARTS, PARTS | {"transport": "tcp"}], ids=called)
def test_rows_in_use_or_the_whole_model_is_the_same(
    how: dict[str, Any], rule: str, runs: Path
) -> None:
    asked = LOGREG | {"optimizer": rule, "evaluate": "end"} | how
    asked |= {"batch": 100 // how.get("workers", 1) // how.get("accumulate", 1)}
    rows, whole = (paceline.fit(out=runs, **asked, dense=dense) for dense in (False, True))
    assert_same(rows.parameters(), whole.parameters(), 1e-5)
    for name in ("loss", "accuracy", "auc", "calibration"):
        assert rows.quality[name] == pytest.approx(whole.quality[name], abs=1e-4)
    # However often: all in step came to what one worker with the whole batch does.
    alone = asked | {"strategy": "single", "batch": 100, "workers": 1}
    one = paceline.fit(out=runs, **{k: v for k, v in alone.items() if k not in SEVERAL})
    assert_same(rows.parameters(), one.parameters(), 1e-5)


SEVERAL = ("transport", "servers", "accumulate")


@pytest.mark.matrix(2)
@pytest.mark.parametrize(
    "how",
    [
        {"strategy": "hogwild", "workers": 2},
        {"strategy": "ps-async", "workers": 2, "transport": "shm"},
        {"strategy": "ps-async", "workers": 2, "transport": "tcp", "servers": 2},
        {"strategy": "ssp", "workers": 2, "transport": "tcp"},
    ],
    ids=called,
)
def test_logistic_regression_learns(how: dict[str, Any], runs: Path) -> None:
    run = paceline.fit(out=runs, **LOGREG | {"data": "clicks:5000", "lr": 0.05}, batch=50, **how)
    assert run.quality["auc"] > 0.6
    assert run.quality["calibration"] == pytest.approx(1.0, abs=0.3)  # of 500 test rows


class Tied(Mixed):
    """Two layers that use the same table."""

    def model(self) -> nn.Module:
        torch.manual_seed(5)
        return Twice(nn.EmbeddingBag(WORDS, WIDTH, mode="mean", sparse=True))


class Twice(nn.Module):
    def __init__(self, bag: nn.EmbeddingBag) -> None:
        super().__init__()
        self.bag, self.again = bag, nn.EmbeddingBag(WORDS, WIDTH, mode="sum", sparse=True)
        self.again.weight = bag.weight
        self.top = nn.Linear(2 * WIDTH, 2)

    def forward(self, words: Tensor) -> Tensor:
        return self.top(torch.cat((self.bag(words[:, :2]), self.again(words[:, 2:])), 1))


class Named(Mixed):
    """Its table is called with a named argument, or gone around."""

    def __init__(self, around: bool) -> None:
        self.around = around

    def model(self) -> nn.Module:
        torch.manual_seed(5)
        return Calling(self.around)


class Calling(nn.Module):
    def __init__(self, around: bool) -> None:
        super().__init__()
        self.around = around
        self.bag = nn.EmbeddingBag(WORDS, WIDTH, mode="mean", sparse=True)
        self.top = nn.Linear(WIDTH, 2)

    def forward(self, words: Tensor) -> Tensor:
        if self.around:
            found = F.embedding_bag(words, self.bag.weight, mode="mean", sparse=True)
        else:
            found = self.bag(input=words)
        return self.top(found)


def test_a_table_that_is_called_by_name_or_gone_around(runs: Path) -> None:
    """Over TCP rows are fetched when the layer is called; whoever goes around it is told so."""
    how = {"strategy": "ps-sync", "transport": "tcp", "workers": 2, "batch": BATCH, "steps": 6}
    fields = {"optimizer": "sgd", "lr": 0.5, "scale_lr": "none", "decay": "none"}
    named = paceline.fit(Named(around=False), out=runs, **how, **fields)
    alone = {"batch": 2 * BATCH, "steps": 6}
    one = paceline.fit(Named(around=True), out=runs, **alone, **fields)
    assert_same(named.parameters(), one.parameters(), 1e-5)
    with pytest.raises(paceline.PacelineError, match="without its layer"):
        paceline.fit(Named(around=True), out=runs, max_restarts=0, **how, **fields)


@pytest.mark.matrix(1)
@pytest.mark.parametrize("how", CREWS[1:3], ids=called)
def test_a_table_that_two_layers_use(how: dict[str, Any], runs: Path) -> None:
    fields = {"optimizer": "sgd", "lr": 0.5, "scale_lr": "none", "decay": "none", "steps": 20}
    several = paceline.fit(Tied(), out=runs, batch=BATCH, **fields, **how)
    alone = paceline.fit(Tied(), out=runs, batch=2 * BATCH, **fields)
    assert_same(several.parameters(), alone.parameters(), 1e-5)
