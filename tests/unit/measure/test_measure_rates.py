"""A run's rate: right where it can be known by hand, and an interval that covers."""

from __future__ import annotations

import time

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.measure.rates import PIECES, Throughput, durations, throughput
from paceline.measure.student import t95
from paceline.store.steps import STEP, Steps

BATCH = 64


def worker(seconds: npt.ArrayLike, start: float = 1.0, batch: int = BATCH) -> Steps:
    """The rows of a worker whose steps take these seconds."""
    each = np.asarray(seconds, dtype=np.float64)
    rows = np.zeros(len(each), dtype=STEP)
    rows["time"] = start + np.cumsum(each)
    rows["step"] = np.arange(len(each))
    rows["samples"] = batch
    rows["data"] = each / 4
    rows["compute"] = each * 3 / 4
    return rows


def test_durations_are_the_phases_together() -> None:
    assert durations(worker([1.0, 2.0])).tolist() == [1.0, 2.0]


def test_no_steps_no_rate() -> None:
    nothing = Throughput(samples_per_second=None)
    assert throughput([]) == nothing
    assert throughput([worker([])]) == nothing


def test_one_step_is_samples_over_its_duration() -> None:
    assert throughput([worker([0.5])]) == Throughput(samples_per_second=128.0, steps=1)


def test_a_step_without_duration_has_no_rate() -> None:
    assert throughput([worker([0.0])]).samples_per_second is None


def test_steady_workers_add_up() -> None:
    found = throughput([worker([0.01] * 1000), worker([0.02] * 500, batch=32)])
    assert found.samples_per_second == pytest.approx(6400 + 1600)
    assert found.low == pytest.approx(8000)
    assert found.high == pytest.approx(8000)
    assert found.warmup_steps == 2


def test_warmup_is_left_out() -> None:
    found = throughput([worker([0.1] * 50 + [0.01] * 1000)])
    assert found.samples_per_second == pytest.approx(6400)
    assert found.warmup_steps == 50


def test_only_the_time_when_all_run_counts() -> None:
    """One worker runs 10 s alone before the other starts, and 10 s after it has finished."""
    long, short = worker([0.01] * 3000, start=0), worker([0.01] * 1000, start=10)
    found = throughput([long, short])
    assert found.samples_per_second == pytest.approx(12_800, rel=1e-3)
    assert found.steps == pytest.approx(2000, abs=20)


def test_workers_that_took_turns_are_counted_overall() -> None:
    turns = [worker([0.01] * 100, start=float(i)) for i in range(3)]
    found = throughput(turns)
    assert found.samples_per_second == pytest.approx(300 * BATCH / 3)
    assert (found.low, found.high, found.steps) == (None, None, 300)


def test_too_few_steps_for_an_interval_still_have_a_rate() -> None:
    found = throughput([worker([0.5] + [0.01] * 8)])
    assert found.samples_per_second == pytest.approx(6400)
    assert (found.low, found.high) == (None, None)


def test_a_worker_without_steps_does_not_count() -> None:
    assert throughput([worker([0.01] * 100), worker([])]).samples_per_second == pytest.approx(6400)


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("count", [200, 2000])
def test_the_interval_covers_the_truth(workers: int, count: int) -> None:
    """Nominally 95 % of the time; 300 runs pin that down to about ±4 %."""
    rng = np.random.default_rng(7)
    truth = workers * BATCH / 0.01
    covered, runs = 0, 300
    for _ in range(runs):
        found = throughput([worker(rng.gamma(2.0, 0.005, count)) for _ in range(workers)])
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= truth <= found.high
    assert 0.90 <= covered / runs <= 0.995


def test_drift_widens_the_interval() -> None:
    rng = np.random.default_rng(3)
    even = rng.gamma(50.0, 0.01 / 50, 2400)
    drifting = np.sort(even.reshape(PIECES, -1).mean(axis=1)).repeat(100)
    mixed = drifting.reshape(PIECES, -1)[rng.permutation(PIECES)].ravel()
    widths = []
    for series in (drifting, mixed):
        found = throughput([worker(series)])
        assert found.low is not None
        assert found.high is not None
        widths.append(found.high - found.low)
    assert widths[0] > 1.5 * widths[1]


@given(st.lists(st.lists(st.floats(0, 10, width=32), max_size=60).map(worker), max_size=4))
def test_any_run_has_a_sane_rate(workers: list[Steps]) -> None:
    found = throughput(workers)
    rate = found.samples_per_second
    assert rate is None or (np.isfinite(rate) and rate >= 0)
    if found.low is not None:
        assert found.high is not None
        assert rate is not None
        assert 0 <= found.low <= rate <= found.high
    assert found.steps + found.warmup_steps <= sum(map(len, workers))


def test_a_hundred_thousand_steps() -> None:
    """Told, not asserted: this machine is shared."""
    rng = np.random.default_rng(0)
    workers = [worker(rng.gamma(4.0, 0.0001, 25_000)) for _ in range(4)]
    begin = time.perf_counter()
    throughput(workers)
    print(f"throughput of 100,000 steps: {1e3 * (time.perf_counter() - begin):.1f} ms")  # noqa: T201


@pytest.mark.parametrize(
    ("freedom", "quantile"),
    [
        (1, 12.706),
        (10, 2.228),
        (20, 2.086),
        (21, 2.0796),
        (23, 2.0687),
        (60, 2.0003),
        (10**6, 1.96),
    ],
)
def test_student(freedom: int, quantile: float) -> None:
    assert t95(freedom) == pytest.approx(quantile, abs=6e-4)


def test_student_needs_two_values() -> None:
    with pytest.raises(ValueError, match="two values"):
        t95(0)
