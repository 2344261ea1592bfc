"""The rate as a function of how far the run is, and what is chosen where nothing is said."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.data.sampler import Order, leased, slices
from paceline.launch.leases import LeaseBook
from paceline.spec import RunSpec
from paceline.types import Facts
from paceline.worker.recipe import WARMUP, Recipe, settle


def facts(**other: Any) -> Facts:
    usual = {"parameters": 100, "samples": 6000, "batch": 50, "epochs": 6, "lr": 0.1}
    return Facts(**{**usual, "optimizer": "sgd", **other})


def settled(found: Facts, **asked: Any) -> RunSpec:
    """As resolve does it: first what the task says, then the recipe."""
    spec = RunSpec(**asked)
    open_ = {"batch": spec.batch or found.batch, "lr": spec.lr or found.lr}
    open_["optimizer"] = spec.optimizer or found.optimizer
    if spec.epochs is None and spec.steps is None:
        open_["epochs"] = found.epochs
    return settle(spec.with_(**open_), found, given=spec.lr is not None)


def recipe(found: Facts | None = None, **asked: Any) -> Recipe:
    found = found or facts()
    return Recipe.of(settled(found, **asked), found)


def test_a_rate_that_was_given_is_used_as_it_is() -> None:
    spec = settled(facts(), lr=0.3, batch=500, workers=4)
    assert (spec.lr, spec.scale_lr, spec.warmup, spec.decay) == (0.3, "none", 0.0, "none")
    constant = Recipe.of(spec, facts())
    assert {constant.rate(seen) for seen in range(0, 36_000, 500)} == {0.3}


@pytest.mark.parametrize("rule", ["sgd", "adagrad"])
def test_samples_one_by_one_have_the_tasks_rate_in_any_batch(rule: str) -> None:
    found = facts(optimizer=rule, one_by_one=True)
    assert recipe(found, strategy="hogwild", workers=2, batch=500).peak == found.lr
    assert recipe(found, strategy="ps-async", workers=2, batch=500).peak > found.lr


def test_a_rate_that_was_given_with_a_way_to_scale_it_is_that_of_the_tasks_batch() -> None:
    spec = settled(facts(), lr=0.3, scale_lr="linear", workers=4)
    assert (spec.lr, spec.scale_lr, spec.decay) == (0.3, "linear", "linear")
    assert Recipe.of(spec, facts()).peak == pytest.approx(1.2)


@pytest.mark.parametrize(
    ("rule", "factor"),
    [("sgd", 4), ("momentum", 4), ("nesterov", 4), ("adagrad", 2), ("adam", 2), ("adamw", 2)],
)
def test_a_rule_that_divides_by_the_gradients_size_grows_by_the_root(
    rule: str, factor: float
) -> None:
    assert recipe(optimizer=rule, workers=4).peak == pytest.approx(0.1 * factor)
    assert recipe(optimizer=rule, workers=4, scale_lr="none").peak == 0.1


@pytest.mark.parametrize(
    ("how", "update"),
    [
        ({"strategy": "single"}, 50),
        ({"strategy": "single", "accumulate": 3}, 150),
        ({"strategy": "ps-sync", "workers": 4}, 200),
        ({"strategy": "ps-sync", "workers": 4, "backup": 1}, 150),
        ({"strategy": "allreduce", "workers": 4, "batch": 20, "accumulate": 2}, 160),
        ({"strategy": "ps-async", "workers": 4}, 50),
        ({"strategy": "ps-async", "workers": 4, "accumulate": 2}, 100),
        ({"strategy": "independent", "workers": 4}, 50),
        ({"strategy": "local-sgd", "workers": 4}, 50),
        ({"strategy": "ps-sync", "workers": 4, "batch": 2000}, 6000),
    ],
)
def test_an_update_is_as_large_as_what_the_strategy_pools(how: dict[str, Any], update: int) -> None:
    """And never larger than the data."""
    assert recipe(**how).update == update


@pytest.mark.parametrize("rule", ["sgd", "adam"])
def test_below_the_tasks_batch_a_rate_shrinks_only_where_that_is_asked_for(rule: str) -> None:
    assert recipe(batch=5, optimizer=rule).peak == 0.1
    assert settled(facts(), batch=5, optimizer=rule).scale_lr == "none"
    assert recipe(batch=5, optimizer=rule, scale_lr="linear").peak == pytest.approx(0.01)


def test_with_the_root_the_second_moment_remembers_as_many_samples() -> None:
    assert recipe(optimizer="adam", workers=4).beta2 == pytest.approx(0.999**4)
    assert recipe(optimizer="adam", batch=5, scale_lr="sqrt").beta2 == 0.999
    assert recipe(optimizer="adam", batch=6000).beta2 == 0.9
    assert recipe(optimizer="adam", workers=4, lr=0.1).beta2 == 0.999


def test_at_the_tasks_own_batch_there_is_no_warm_up() -> None:
    assert settled(facts()).warmup == 0.0
    assert recipe().rate(0) == 0.1


def test_a_scaled_rate_rises_from_the_tasks_own_and_falls_to_nothing() -> None:
    scaled = recipe(workers=4, decay="linear")
    assert settled(facts(), workers=4).warmup == pytest.approx(6 * WARMUP)
    assert scaled.rate(0) == 0.1
    assert scaled.rate(round(scaled.warmup / 2)) == pytest.approx(0.25)
    assert scaled.rate(math.ceil(scaled.warmup)) == pytest.approx(0.4)
    assert 0 < scaled.rate(scaled.total - scaled.update) < 0.01
    assert scaled.rate(scaled.total) == 0.0


def test_a_rate_that_is_not_scaled_rises_from_the_first_steps_share() -> None:
    rising = recipe(lr=0.3, warmup=1.0)
    assert [rising.rate(seen) for seen in (0, 3000, 6000)] == pytest.approx([0.0025, 0.15125, 0.3])
    assert rising.rate(35_000) == 0.3  # nothing was said of a fall


def test_cosine_is_half_way_down_in_the_middle() -> None:
    falling = recipe(decay="cosine")
    assert falling.rate(falling.total // 2) == pytest.approx(falling.peak / 2)
    assert falling.rate(falling.total // 10) > recipe(decay="linear").rate(falling.total // 10)


def test_a_warm_up_longer_than_the_run_just_rises() -> None:
    rising = recipe(warmup=100.0)
    assert rising.rate(35_000) < rising.peak


numbers = {
    "samples": st.integers(1, 300),
    "batch": st.integers(1, 40),
    "accumulate": st.integers(1, 4),
    "workers": st.integers(1, 5),
}


@given(
    **numbers,
    warmup=st.none() | st.floats(0, 8),
    decay=st.sampled_from(["none", "linear", "cosine"]),
    scale=st.sampled_from(["auto", "linear", "sqrt", "none"]),
    rule=st.sampled_from(["sgd", "adam"]),
    seen=st.integers(0, 2000),
)
def test_a_rate_is_never_above_its_peak_nor_below_nothing(
    samples: int,
    batch: int,
    accumulate: int,
    workers: int,
    warmup: float | None,
    decay: str,
    scale: str,
    rule: str,
    seen: int,
) -> None:
    found = facts(samples=samples, optimizer=rule)
    made = recipe(
        found,
        **{"batch": batch, "accumulate": accumulate, "workers": workers, "strategy": "allreduce"},
        **{"warmup": warmup, "decay": decay, "scale_lr": scale},
    )
    assert 0 <= made.rate(seen) <= made.peak * (1 + 1e-9)
    if seen < made.total:
        assert made.rate(seen) > 0


@given(**numbers, steps=st.integers(1, 40))
def test_the_total_is_what_is_drawn(
    samples: int, batch: int, accumulate: int, workers: int, steps: int
) -> None:
    size = {"batch": batch, "accumulate": accumulate, "workers": workers, "steps": steps}
    found, step = facts(samples=samples), batch * accumulate
    rounds = list(slices(Order(samples, 0), step, 0, workers, None, steps))
    assert recipe(found, strategy="allreduce", **size).total == rounds[-1].seen + rounds[-1].whole

    book = LeaseBook(samples, step, workers, None, steps * workers)
    lots = leased(Order(samples, 0), step, iter(lambda: book.take(0), None))
    drawn = sum(len(lot.rows) for lot in lots)
    assert recipe(found, strategy="ps-async", **size).total == drawn


@given(**numbers)
def test_a_run_is_repeated_by_its_resolved_spec(
    samples: int, batch: int, accumulate: int, workers: int
) -> None:
    found = facts(samples=samples)
    spec = settled(found, strategy="allreduce", batch=batch, accumulate=accumulate, workers=workers)
    again = settle(spec, found, given=True)
    assert again == spec
