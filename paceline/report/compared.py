"""Two runs or two sweeps beside each other: what was asked, what came of it, and what is noise.

A run counts as a cell with one trial. Runs of sweeps stand for their cells, with all repeats; if it
is the same sweep, block by block. Two sweeps are compared cell by cell, by name, with repeats that
are independent. One run of each tells what their steps vary by, and not what runs do: there it
stays open.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from paceline.diagnose.repeats import (
    difference,
    differs,
    ratio,
    repeats_needed,
    unpaired,
    unpaired_difference,
)
from paceline.diagnose.scaling import speedup
from paceline.diagnose.swept import NOTICED, Target, choose_target, paired, seconds_to
from paceline.diagnose.target import Reached
from paceline.measure.spread import Spread
from paceline.store.sweeps import Trial

Figure = Callable[[Trial], float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A run or a sweep: `about` has its spec or study, host and versions; trials by cell."""

    kind: str
    name: str
    about: Mapping[str, Any]
    spec: Mapping[str, Any]
    trials: Mapping[str, Sequence[Trial]]
    sweep: str | None = None  # the one that a run belongs to, and its cell there
    cell: str | None = None


def compare(a: Side, b: Side, asked: tuple[str, float] | None = None) -> dict[str, Any]:
    """What `paceline compare --json` prints."""
    pairs, together = _pairs(a, b)
    every = [trial for _, own, other in pairs for trial in (*own, *other)]
    target = choose_target(asked, {trial.cell: trial.cell for trial in every}, every)
    cells = [{"cell": name, **_results(own, other, target, together)} for name, own, other in pairs]
    shared = {name for name, _, _ in pairs}
    both_sweeps = a.kind == b.kind == "sweep"
    return {
        "a": {"kind": a.kind, "name": a.name},
        "b": {"kind": b.kind, "name": b.name},
        "interleaved": together,
        "spec": _apart(a.spec, b.spec),
        "origin": _apart(_origin(a), _origin(b)),
        "target": asdict(target) if target else None,
        "cells": cells,
        "only_a": [name for name in a.trials if both_sweeps and name not in shared],
        "only_b": [name for name in b.trials if both_sweeps and name not in shared],
        "sentence": sentence(cells, together=together),
    }


def _pairs(a: Side, b: Side) -> tuple[list[tuple[str, list[Trial], list[Trial]]], bool]:
    """Cells that are held against each other, and whether their runs took turns."""
    together = a.sweep is not None and a.sweep == b.sweep and a.cell != b.cell
    both = a.kind == b.kind == "sweep"
    names = [name for name in a.trials if name in b.trials] if both else [""]
    found = []
    for name in names:
        own = list(a.trials[name] if name else next(iter(a.trials.values())))
        other = list(b.trials[name] if name else next(iter(b.trials.values())))
        if a.sweep and (a.sweep, a.cell) == (b.sweep, b.cell):  # two repeats of one cell
            own, other = ([t for t in own if t.run == side.name] for side in (a, b))
        own, other = ([t for t in each if not t.fault] for each in (own, other))
        if own and other:
            found.append((name, own, other))
    return found, together


def _results(
    own: list[Trial], other: list[Trial], target: Target | None, together: bool
) -> dict[str, Any]:
    def to_it(trial: Trial) -> float | None:
        met = seconds_to(trial, target) if target and trial.curve else None
        return met.seconds if isinstance(met, Reached) else None

    def row(figure: Figure, *, subtract: bool = False) -> dict[str, Any]:
        one, two = ([v for t in each if (v := figure(t)) is not None] for each in (own, other))
        if not one or not two:
            return {"a": None, "b": None, "change": None}
        in_turns, apart = (difference, unpaired_difference) if subtract else (ratio, unpaired)
        pair = paired(other, own, figure) if together else ([], [])
        change = in_turns(*pair) if pair[0] else apart(two, one)
        return {"a": median(one), "b": median(two), "change": _told(change, subtract=subtract)}

    rates: Figure = lambda trial: trial.figures.get("samples_per_second")  # noqa: E731
    found: dict[str, Any] = {
        "runs": {"a": len(own), "b": len(other)},
        "throughput": row(rates),
        "epoch": row(lambda trial: trial.figures.get("epoch_seconds")),
        "to_target": row(to_it),
        "total": row(lambda trial: trial.figures.get("total_seconds")),
        "accuracy": row(lambda trial: trial.figures.get("accuracy"), subtract=True),
        "loss": row(lambda trial: trial.figures.get("loss"), subtract=True),
    }
    one_each = len(own) == len(other) == 1 and found["throughput"]["change"]
    found["within"] = _within(own[0], other[0]) if one_each else None
    pair = paired(other, own, rates) if together else ([], [])
    found["repeats_needed"] = repeats_needed(*pair, NOTICED) if len(pair[0]) > 1 else None
    return found


def _within(one: Trial, two: Trial) -> dict[str, Any]:
    """How much of a difference their own steps explain: the least of what noise there is."""
    found = speedup(two.figures, one.figures)
    return {"low": found.low, "high": found.high, "explained": found.low <= 1 <= found.high}


def _told(change: Spread, *, subtract: bool) -> dict[str, Any]:
    same = 0.0 if subtract else 1.0
    return {
        "value": change.value,
        "low": change.low,
        "high": change.high,
        "different": differs(change, same),
    }


def sentence(cells: Sequence[Mapping[str, Any]], *, together: bool) -> str:
    """What of it is a difference, in words."""
    if not cells:
        return "They have no cell in common that both have finished, so nothing can be compared."
    told = "; ".join(_clause(cell) for cell in cells)
    told = f"{told[0].upper()}{told[1:]}."
    if not together:
        told += " They did not take turns: what has changed on the machine meanwhile is in it, too."
    return told


def _clause(cell: Mapping[str, Any]) -> str:
    name = f"{cell['cell']}: " if cell["cell"] else ""
    change = cell["throughput"]["change"]
    if change is None:
        return f"{name}how fast they were is not known of both"
    value = f"{change['value']:.3f} times as fast as the first"
    if change["different"] is None:
        inside = cell["within"] or {}
        if inside.get("explained"):
            return f"{name}the second was {value}, which their own steps' noise explains"
        return (
            f"{name}the second was {value}; one run of each does not tell how much of that is "
            "noise: have them take turns, with paceline sweep"
        )
    bounds = f"({change['low']:.3f}–{change['high']:.3f})"
    if change["different"]:
        return f"{name}the second is {value} {bounds}, which is more than the noise"
    needed = cell["repeats_needed"]
    more = f"; about {needed} repeats would show a difference of 5 %" if needed else ""
    return f"{name}no difference in speed beyond the noise {bounds}{more}"


def _apart(a: Mapping[str, Any], b: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What the two say differently."""
    names = dict.fromkeys([*a, *b])
    return {n: {"a": a.get(n), "b": b.get(n)} for n in names if a.get(n) != b.get(n)}


def _origin(side: Side) -> dict[str, Any]:
    about = side.about
    host, versions = about.get("host") or {}, about.get("versions") or {}
    known = {f"host {name}": host.get(name) for name in ("name", "cores", "cpu", "os")}
    return {
        "paceline": about.get("paceline"),
        "commit": about.get("commit"),
        **known,
        **{f"version of {name}": value for name, value in versions.items()},
    }
