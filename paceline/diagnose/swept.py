"""What a sweep's trials say: each cell's figures, and what they are against its baseline's.

Levels are over a cell's repeats; ratios are block by block (`repeats.py`), so they are only of
repeats that both cells have. Pure: trials in, figures out.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from paceline.diagnose.repeats import difference, level, mean_level, ratio, repeats_needed
from paceline.diagnose.target import NotReached, Reached, Scored, to_target
from paceline.measure.spread import Spread
from paceline.store.sweeps import Trial

NOTICED = 0.05  # the share that is worth knowing whether there is a difference of it
ASTRAY = 2.0  # times the baseline's error or loss: it did not learn what the others did


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What time is taken to. `asked`: by whoever made the study; else all that learned meet it."""

    metric: str
    value: float
    asked: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """A cell against its baseline, as ratios that are above 1 where it is faster."""

    throughput: Spread | None = None
    epoch: Spread | None = None
    to_target: Spread | None = None
    accuracy: Spread | None = None  # a difference
    needed: int | None = None  # repeats that would show a difference of NOTICED in throughput


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Of one cell. What too few trials tell is None."""

    trials: tuple[Trial, ...]
    throughput: Spread | None
    epoch: Spread | None
    to_target: Spread | None
    accuracy: Spread | None
    loss: Spread | None
    reached: int  # trials that met the target
    gain: Gain | None  # None of a baseline itself, and where there is none

    @property
    def failed(self) -> tuple[Trial, ...]:
        return tuple(trial for trial in self.trials if trial.fault)

    @property
    def done(self) -> tuple[Trial, ...]:
        return tuple(trial for trial in self.trials if not trial.fault)


def find(
    bases: Mapping[str, str], trials: Sequence[Trial], target: Target | None
) -> dict[str, Found]:
    """Every cell, by name; `bases` has the name of each one's baseline."""
    own = {cell: [trial for trial in trials if trial.cell == cell] for cell in bases}
    return {
        cell: _found(own[cell], own.get(base, []) if base != cell else None, target)
        for cell, base in bases.items()
    }


def choose_target(
    asked: tuple[str, float] | None, bases: Mapping[str, str], trials: Sequence[Trial]
) -> Target | None:
    """The one that was asked for; else the best that every trial meets.

    A cell that ends with more than twice its baseline's error has not learned what others have. It
    does not make the target easier for them, and is told as not reaching it.
    """
    if asked:
        return Target(metric=asked[0], value=asked[1], asked=True)
    done = [trial for trial in trials if not trial.fault]
    for metric in ("accuracy", "loss"):
        best = {(t.cell, t.repeat): _best(t, metric) for t in done}
        known = {key: value for key, value in best.items() if value is not None}
        if not known or len(known) < len(best):
            continue
        worst = max if metric == "loss" else min
        usual = {
            cell: statistics.median(each)
            for cell in bases
            if (each := [value for key, value in known.items() if key[0] == cell])
        }
        fit = [
            value
            for (cell, _), value in known.items()
            if _missing(usual[cell], metric)
            <= ASTRAY * _missing(usual.get(bases[cell], usual[cell]), metric)
        ]
        return Target(metric=metric, value=worst(fit), asked=False)
    return None


def seconds_to(trial: Trial, target: Target) -> Reached | NotReached:
    """When a trial met the target, in seconds of training."""
    curve = [
        Scored(
            seconds=_number(score["seconds"]),
            samples=_number(score["epochs"]),
            value=_number(score[target.metric]),
        )
        for score in trial.curve
    ]
    return to_target(curve, target.value, falling=target.metric == "loss")


def paired(
    over: Iterable[Trial], under: Iterable[Trial], figure: Callable[[Trial], float | None]
) -> tuple[list[float], list[float]]:
    """A figure of both in every block in which both have it."""
    a, b = ({t.repeat: v for t in some if (v := figure(t))} for some in (over, under))
    both = sorted(set(a) & set(b))
    return [a[repeat] for repeat in both], [b[repeat] for repeat in both]


def named(figure: str) -> Callable[[Trial], float | None]:
    return lambda trial: trial.figures.get(figure)


def _found(own: Sequence[Trial], base: Sequence[Trial] | None, target: Target | None) -> Found:
    def to_it(trial: Trial) -> float | None:
        met = seconds_to(trial, target) if target and trial.curve else None
        return met.seconds if isinstance(met, Reached) else None

    done = [trial for trial in own if not trial.fault]
    times = [seconds for trial in done if (seconds := to_it(trial))]
    return Found(
        trials=tuple(own),
        throughput=_level(done, "samples_per_second"),
        epoch=_level(done, "epoch_seconds"),
        # Of those that met it alone it would be the time of the lucky.
        to_target=level(times) if times and len(times) == len(done) else None,
        accuracy=_mean(done, "accuracy"),
        loss=_mean(done, "loss"),
        reached=len(times),
        gain=None if base is None else _gain(done, base, to_it),
    )


def _gain(
    own: Sequence[Trial], base: Sequence[Trial], to_it: Callable[[Trial], float | None]
) -> Gain:
    rates = paired(own, base, named("samples_per_second"))
    epochs = paired(base, own, named("epoch_seconds"))
    times = paired(base, own, to_it)
    right = paired(own, base, named("accuracy"))
    whole = len(times[0]) == len(rates[0])  # some that did not meet it are not left out quietly
    return Gain(
        throughput=ratio(*rates) if rates[0] else None,
        epoch=ratio(*epochs) if epochs[0] else None,
        to_target=ratio(*times) if times[0] and whole else None,
        accuracy=difference(*right) if right[0] else None,
        needed=repeats_needed(*rates, NOTICED),
    )


def _level(trials: Sequence[Trial], figure: str) -> Spread | None:
    values = [value for trial in trials if (value := trial.figures.get(figure))]
    return level(values) if values else None


def _mean(trials: Sequence[Trial], figure: str) -> Spread | None:
    values = [v for trial in trials if (v := trial.figures.get(figure)) is not None]
    return mean_level(values) if values else None


def _best(trial: Trial, metric: str) -> float | None:
    values = [value for score in trial.curve if (value := score.get(metric)) is not None]
    return (min if metric == "loss" else max)(values, default=None)


def _missing(value: float, metric: str) -> float:
    """How far from perfect."""
    return value if metric == "loss" else 1 - value


def _number(value: float | None) -> float:
    return math.nan if value is None else value
