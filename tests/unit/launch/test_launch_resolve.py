"""From the spec as asked and what workers found, to the spec as run."""

from __future__ import annotations

from typing import Any

import pytest

from paceline.errors import RequestError, RunFailed, SpecError
from paceline.launch.resolve import LARGE, check_memory, resolve
from paceline.spec import RunSpec
from paceline.types import Facts


def facts(**other: Any) -> Facts:
    found = {
        "parameters": 1000,
        "samples": 500,
        "batch": 20,
        "epochs": 3,
        "lr": 0.1,
        "optimizer": "adam",
    }
    return Facts(**{**found, **other})


def resolved(found: Facts | None = None, own_loop: bool = False, **asked: Any) -> RunSpec:
    return resolve(RunSpec(**asked), [found or facts()] * asked.get("workers", 1), 4, own_loop)


def test_the_task_fills_what_was_left_open() -> None:
    spec = resolved()
    assert (spec.batch, spec.epochs, spec.lr, spec.optimizer) == (20, 3, 0.1, "adam")
    assert spec.steps is None


def test_where_samples_go_one_by_one_a_batch_is_how_often_that_is_told() -> None:
    many = facts(samples=8_000_000, batch=1000, tables=((9, 1),), optimizer="adagrad")
    alone = facts(
        samples=8_000_000, batch=1000, tables=((9, 1),), optimizer="adagrad", one_by_one=True
    )
    few = facts(samples=60_000, batch=1000, tables=((9, 1),), optimizer="adagrad", one_by_one=True)
    assert resolved(many, strategy="hogwild", workers=2).batch == 1000
    assert resolved(alone, strategy="single").batch == 1000
    assert resolved(alone, strategy="hogwild", workers=2).batch == 32_000
    assert resolved(alone, strategy="hogwild", workers=16).batch == 8_000_000 // (32 * 16)
    assert resolved(few, strategy="hogwild", workers=2).batch == 1000
    assert resolved(alone, strategy="hogwild", workers=2, batch=50).batch == 50


def test_what_was_asked_stands() -> None:
    spec = resolved(batch=7, steps=9, lr=0.5, optimizer="sgd")
    assert (spec.batch, spec.epochs, spec.lr, spec.optimizer) == (7, None, 0.5, "sgd")
    assert spec.steps == 9


def test_the_recipe_is_said_in_full() -> None:
    spec = resolved(batch=80, steps=25)
    assert (spec.lr, spec.scale_lr, spec.decay) == (0.1, "sqrt", "linear")
    assert spec.warmup == pytest.approx(0.1 * 1820 / 500)  # seven steps an epoch, the last short
    given = resolved(batch=80, lr=0.2)
    assert (given.lr, given.scale_lr, given.warmup, given.decay) == (0.2, "none", 0.0, "none")


def test_the_rate_of_a_loop_of_ones_own_is_its_own() -> None:
    spec = resolved(facts(samples=0, batch=1), own_loop=True, batch=8)
    assert (spec.lr, spec.scale_lr, spec.warmup, spec.decay) == (0.1, "none", 0.0, "none")


def test_a_strategy_without_servers_stays_without() -> None:
    assert resolved(strategy="allreduce", workers=2).servers is None


def test_small_models_over_tcp_have_one_server() -> None:
    spec = resolved(strategy="ps-async", workers=2, transport="tcp")
    assert (spec.servers, spec.transport) == (1, "tcp")


def test_large_models_have_several_servers_but_no_more_than_cores() -> None:
    large = facts(parameters=LARGE)
    for transport in ("shm", "tcp"):
        spec = resolved(large, strategy="ps-async", workers=8, transport=transport)
        assert spec.servers == 4


@pytest.mark.parametrize("rule", ["lars", "lamb"])
def test_a_layerwise_rule_has_several_servers_only_where_they_share_norms(rule: str) -> None:
    large = facts(parameters=LARGE, optimizer=rule)  # the task's own rule counts, too
    for transport in ("shm", "tcp"):
        assert resolved(large, strategy="ps-async", workers=3, transport=transport).servers == 1
    assert resolved(large, strategy="ps-sync", workers=3, transport="tcp").servers == 1
    assert resolved(large, strategy="ps-sync", workers=3, transport="shm").servers == 3
    with pytest.raises(SpecError, match=rf"--servers 2: rule '{rule}'.*use --servers 1"):
        resolved(large, strategy="ps-sync", workers=3, transport="tcp", servers=2)


def test_no_server_without_a_parameter_of_its_own() -> None:
    tiny = facts(parameters=2)
    for strategy in ("ps-sync", "ps-async"):
        assert (resolved(tiny, strategy=strategy, workers=3).servers or 1) <= 2
    with pytest.raises(SpecError, match="--servers 3: more than the model's parameters"):
        resolved(tiny, strategy="ps-sync", workers=3, servers=3)


def test_auto_takes_shared_memory_where_there_is_some() -> None:
    assert resolved(strategy="ps-sync", workers=2).transport == "shm"


@pytest.mark.parametrize("sent", [{"port": 7000}, {"codec": "bf16"}])
def test_auto_is_tcp_where_something_is_to_be_sent(sent: dict[str, Any]) -> None:
    assert resolved(strategy="ps-sync", workers=2, **sent).transport == "tcp"


def test_backup_over_shared_memory_has_one_server() -> None:
    large, how = facts(parameters=LARGE), {"strategy": "ps-sync", "workers": 3, "backup": 1}
    spec = resolved(large, **how)
    assert (spec.transport, spec.servers) == ("shm", 1)
    spec = resolved(large, servers=2, **how)
    assert (spec.transport, spec.servers) == ("tcp", 2)


def test_what_a_strategy_needs_is_filled_in() -> None:
    assert resolved(strategy="ssp", workers=2).bound == 3
    assert resolved(strategy="ssp", workers=2, bound=1).bound == 1
    assert resolved(strategy="ps-async", workers=2).bound is None
    spec = resolved(strategy="local-sgd", workers=2)
    assert (spec.sync_every, spec.outer_lr, spec.outer_momentum) == (10, 1.0, 0.0)
    assert resolved(strategy="hogwild", workers=2).transport == "shm"


@pytest.mark.parametrize(("batch", "fine"), [(500, True), (501, False)])
def test_a_batch_is_no_larger_than_the_data(batch: int, fine: bool) -> None:
    if fine:
        assert resolved(batch=batch).batch == batch
    else:
        with pytest.raises(SpecError, match=r"--batch 501: larger than the data.* 500 samples"):
            resolved(batch=batch)


def test_the_tasks_own_batch_is_checked_too() -> None:
    with pytest.raises(SpecError, match="--batch 20: larger than the data"):
        resolved(facts(samples=10))


def test_data_must_not_be_empty() -> None:
    with pytest.raises(SpecError, match="no training samples"):
        resolved(facts(samples=0))


def test_a_loop_of_ones_own_takes_its_samples_itself() -> None:
    assert resolved(facts(samples=0, batch=1), own_loop=True).batch == 1


@pytest.mark.parametrize("other", [{"parameters": 999}, {"samples": 499}])
def test_workers_that_disagree_are_named(other: dict[str, int]) -> None:
    spec = RunSpec(strategy="ps-sync", workers=3)
    with pytest.raises(RequestError, match=r"^worker-2 has .* worker-0 1,000 and 500"):
        resolve(spec, [facts(), facts(), facts(**other)], 4, False)


def test_memory_that_is_not_there_is_refused() -> None:
    check_memory(1000)
    with pytest.raises(RunFailed, match="fewer workers or a smaller model"):
        check_memory(1 << 50)
