"""What trials say: levels, gains block by block, and the target that time is taken to."""

from __future__ import annotations

import pytest

from paceline.diagnose.swept import Target, choose_target, find
from paceline.store.sweeps import Trial

BASES = {"one": "one", "two": "one"}


def trial(
    cell: str, repeat: int, rate: float, scores: tuple[float, ...] = (0.8, 0.9), **more: str
) -> Trial:
    curve = [
        {"seconds": 1000 / rate * (i + 1), "epochs": i + 1.0, "accuracy": each, "loss": 1 - each}
        for i, each in enumerate(scores)
    ]
    figures = {"samples_per_second": rate, "epoch_seconds": 1000 / rate, "accuracy": scores[-1]}
    return Trial(
        cell=cell, repeat=repeat, run="r", seconds=1.0, figures=dict(figures), curve=curve, **more
    )


def test_gains_are_of_the_same_block_and_only_of_blocks_that_both_have() -> None:
    drift = (100.0, 150.0, 60.0)
    trials = [trial("one", i, rate) for i, rate in enumerate(drift)]
    trials += [trial("two", i, 1.5 * rate) for i, rate in enumerate(drift[:2])]
    found = find(BASES, trials, Target(metric="accuracy", value=0.85, asked=True))
    assert found["one"].gain is None
    gain = found["two"].gain
    assert gain is not None
    for ratio in (gain.throughput, gain.epoch, gain.to_target):
        assert ratio is not None
        assert (ratio.value, ratio.low, ratio.repeats) == (pytest.approx(1.5),) * 2 + (2,)
    assert gain.accuracy is not None
    assert gain.accuracy.value == 0
    assert found["two"].to_target is not None
    assert found["two"].to_target.value == pytest.approx(1.5 * 1000 / (1.5 * 150**0.5 * 100**0.5))


def test_a_failed_trial_is_counted_and_nothing_else() -> None:
    trials = [trial("one", 0, 100), trial("two", 0, 150, fault="worker-1 died.")]
    found = find(BASES, trials, None)
    assert (len(found["two"].failed), found["two"].throughput) == (1, None)
    assert found["two"].gain is not None
    assert found["two"].gain.throughput is None


def test_the_time_of_the_lucky_is_not_told() -> None:
    trials = [trial("one", 0, 100), trial("one", 1, 100, scores=(0.7, 0.8))]
    found = find({"one": "one"}, trials, Target(metric="accuracy", value=0.85, asked=True))
    assert (found["one"].to_target, found["one"].reached) == (None, 1)


def test_the_target_is_the_best_that_all_reach_but_for_those_that_went_astray() -> None:
    trials = [trial("one", 0, 100), trial("two", 0, 100, scores=(0.8, 0.88))]
    assert choose_target(None, BASES, trials) == Target(metric="accuracy", value=0.88, asked=False)
    trials.append(trial("three", 0, 100, scores=(0.1, 0.1)))
    bases = BASES | {"three": "one"}
    assert choose_target(None, bases, trials) == Target(metric="accuracy", value=0.88, asked=False)
    assert choose_target(("loss", 0.2), bases, trials) == Target(
        metric="loss", value=0.2, asked=True
    )
    assert choose_target(None, BASES, []) is None


def test_without_accuracy_the_target_is_a_loss() -> None:
    bare = Trial(
        cell="one",
        repeat=0,
        run="r",
        seconds=1.0,
        curve=[{"seconds": 1.0, "epochs": 1.0, "accuracy": None, "loss": 0.3}],
    )
    assert choose_target(None, {"one": "one"}, [bare]) == Target(
        metric="loss", value=0.3, asked=False
    )
