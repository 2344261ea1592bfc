"""N workers of batch b, in step, are one worker of batch N·b: to 1e-5 after 50 steps."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from contract_tasks import Net
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

import paceline
from paceline.data.sampler import Order, slices

pytestmark = [pytest.mark.parallel, pytest.mark.timeout(60, method="signal")]

STEPS = 50
BATCH = 8
RATES = {
    **{"sgd": 0.1, "momentum": 0.05, "nesterov": 0.05, "adagrad": 0.05},
    **{"adam": 0.01, "adamw": 0.01, "lars": 5.0, "lamb": 0.01},
}
LAYERWISE = ["lars", "lamb"]

SERVED = [
    {"strategy": "ps-sync", "transport": transport, "servers": servers}
    for transport in ("shm", "tcp")
    for servers in (1, 2, 3)
]
STOOD_BY = SERVED[4] | {"replicas": 1}
IN_STEP: list[dict[str, Any]] = [*SERVED, STOOD_BY, {"strategy": "allreduce"}]


def called(how: dict[str, Any]) -> str:
    return "-".join(str(value) for value in how.values())


def trained(
    out: Path, samples: int, batch: int, rule: str = "sgd", **how: Any
) -> dict[str, Tensor]:
    how = {"steps": STEPS, "lr": RATES[rule], **how}
    run = paceline.fit(
        Net(samples), batch=batch, optimizer=rule, evaluate="never", seed=3, out=out, **how
    )
    assert run.status == "done"
    return run.parameters()


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """One worker's result, trained once for each global batch and rule."""
    out = tmp_path_factory.mktemp("alone")

    @cache
    def train(samples: int, batch: int, rule: str = "sgd", **how: Any) -> dict[str, Tensor]:
        return trained(out, samples, batch, rule, strategy="single", **how)

    return train


def assert_same(ours: dict[str, Tensor], theirs: dict[str, Tensor], within: float) -> None:
    assert ours.keys() == theirs.keys()
    for name, value in ours.items():
        torch.testing.assert_close(value, theirs[name], rtol=0, atol=within)


@pytest.mark.matrix(6)
@pytest.mark.parametrize("workers", [2, 3])
@pytest.mark.parametrize("how", IN_STEP, ids=called)
def test_many_in_step_are_one(how: dict[str, Any], workers: int, alone: Any, runs: Path) -> None:
    """203 samples leave 11 for the last round of each epoch, whatever N."""
    many = trained(runs, 203, BATCH, workers=workers, **how)
    assert_same(many, alone(203, BATCH * workers), 1e-5)


@pytest.mark.matrix(3)
@pytest.mark.parametrize("workers", [2, 4])
@pytest.mark.parametrize("how", [SERVED[1], SERVED[4], {"strategy": "allreduce"}], ids=called)
def test_a_last_round_with_fewer_samples_than_workers(
    how: dict[str, Any], workers: int, alone: Any, runs: Path
) -> None:
    """193 samples leave one: all workers but one have nothing to give."""
    many = trained(runs, 193, BATCH, workers=workers, **how)
    assert_same(many, alone(193, BATCH * workers), 1e-5)


@pytest.mark.matrix(5)
@pytest.mark.parametrize("rule", ["momentum", "nesterov", "adagrad", "adam", "adamw"])
@pytest.mark.parametrize(
    "how", [SERVED[1], SERVED[4], STOOD_BY, {"strategy": "allreduce"}], ids=called
)
def test_rules_with_a_memory(how: dict[str, Any], rule: str, alone: Any, runs: Path) -> None:
    many = trained(runs, 203, BATCH, rule, workers=3, weight_decay=0.01, **how)
    assert_same(many, alone(203, BATCH * 3, rule, weight_decay=0.01), 1e-5)


@pytest.mark.matrix(3)
@pytest.mark.parametrize("rule", LAYERWISE)
@pytest.mark.parametrize(
    "how", [*SERVED[:4], SERVED[3] | {"replicas": 1}, {"strategy": "allreduce"}], ids=called
)
def test_rules_a_layer(how: dict[str, Any], rule: str, alone: Any, runs: Path) -> None:
    """Shards cut layers; and with three of them two workers, one worker serves two."""
    workers = 2 if how.get("servers") == 3 else 3
    many = trained(runs, 203, BATCH, rule, workers=workers, weight_decay=0.01, **how)
    assert_same(many, alone(203, BATCH * workers, rule, weight_decay=0.01), 1e-5)


@pytest.mark.matrix(1)
@pytest.mark.parametrize("rule", ["momentum", "lamb"])
@pytest.mark.parametrize("width", [20_000, 120_000])
def test_large_models_too(width: int, rule: str, runs: Path) -> None:
    """Of 200,000 parameters workers serve shards; a million goes in blocks, or stays in place."""

    def parameters(**how: Any) -> dict[str, Tensor]:
        task, more = Net(75, width), {"steps": 12, "lr": 0.001, "optimizer": rule, "out": runs}
        return paceline.fit(task, evaluate="never", **more, **how).parameters()

    single = parameters(strategy="single", batch=16)
    ways = [{"strategy": "allreduce"}, {"transport": "tcp", "servers": 1}]
    ways += [{"transport": "shm", "servers": servers} for servers in (1, 3)]
    ways += [{"transport": "tcp", "servers": 3}] if rule not in LAYERWISE else []
    for how in ways:
        assert_same(parameters(workers=2, batch=8, **how), single, 1e-5)


@settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    samples=st.integers(20, 120),
    batch=st.integers(1, 5),
    accumulate=st.integers(1, 3),
    workers=st.integers(1, 4),
    how=st.sampled_from(IN_STEP),
    rule=st.sampled_from(sorted(RATES)),
    steps=st.integers(1, 40),
)
def test_for_any_samples_batch_and_workers(
    samples: int,
    batch: int,
    accumulate: int,
    workers: int,
    how: dict[str, Any],
    rule: str,
    steps: int,
    alone: Any,
    tmp_path: Path,
) -> None:
    if rule in LAYERWISE and how.get("transport") == "tcp":
        how = {**how, "servers": 1}
    whole = min(batch * accumulate * workers, samples)
    size = {"workers": workers, "accumulate": accumulate, "steps": steps}
    many = trained(tmp_path, samples, batch, rule, **size, **how)
    assert_same(many, alone(samples, whole, rule, steps=steps), 1e-5)


ADDING_UP = [{"strategy": "single"}, SERVED[1], SERVED[4], {"strategy": "allreduce"}]


@pytest.mark.matrix(2)
@pytest.mark.parametrize("rule", ["sgd", "adam"])
@pytest.mark.parametrize("how", ADDING_UP, ids=called)
def test_batches_added_up_are_one_larger_batch(
    how: dict[str, Any], rule: str, alone: Any, runs: Path
) -> None:
    """203 samples leave 11 for the last round of 32 or of 96, so some batches of it are short."""
    workers = 1 if how["strategy"] == "single" else 3
    many = trained(runs, 203, BATCH, rule, workers=workers, accumulate=4, **how)
    assert_same(many, alone(203, BATCH * 4 * workers, rule), 1e-5)


@pytest.mark.matrix(2)
@pytest.mark.parametrize("rule", ["sgd", "adam"])
@pytest.mark.parametrize("how", ADDING_UP[1:], ids=called)
def test_a_recipe_is_that_of_the_global_batch(
    how: dict[str, Any], rule: str, alone: Any, runs: Path
) -> None:
    """Net's own batch is 64: here its rate is scaled up, with warm-up and decay."""
    rate = {"lr": None} if rule == "sgd" else {"scale_lr": "sqrt"}
    many = trained(runs, 203, BATCH, rule, workers=4, accumulate=3, **rate, **how)
    assert_same(many, alone(203, BATCH * 12, rule, **rate), 1e-5)


@pytest.mark.matrix(1)
@pytest.mark.parametrize("rule", ["sgd", "momentum", "adam"])
def test_one_worker_is_plain_torch(rule: str, runs: Path) -> None:
    seed, batch, lr = 3, 16, RATES[rule]
    ours = trained(runs, 203, batch, rule, strategy="single")

    task = Net(203)
    data = task.data()
    torch.manual_seed(seed)
    model = task.model()
    kinds = {
        "sgd": lambda p: torch.optim.SGD(p, lr=lr),
        "momentum": lambda p: torch.optim.SGD(p, lr=lr, momentum=0.9),
        "adam": lambda p: torch.optim.Adam(p, lr=lr),
    }
    optimizer = kinds[rule](model.parameters())
    for lot in slices(Order(203, seed), batch, 0, 1, None, STEPS):
        optimizer.zero_grad()
        task.loss(model, data.train.batch(lot.rows)).backward()
        optimizer.step()
    assert_same(ours, model.state_dict(), 1e-6)


def test_workers_that_do_not_exchange_end_elsewhere(alone: Any, runs: Path) -> None:
    apart = trained(runs, 203, BATCH, workers=2, strategy="independent")
    together = alone(203, BATCH * 2)
    assert any((apart[name] - together[name]).abs().max() > 1e-3 for name in apart)
