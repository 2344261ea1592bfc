"""A sweep in one object: what `paceline sweep --json` prints, from the sweep's folder alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from paceline.diagnose.repeats import differs
from paceline.diagnose.swept import Found, Gain, choose_target, find
from paceline.measure.spread import Spread
from paceline.report.answer import answer
from paceline.store.sweeps import SweepFolder, Trial
from paceline.store.text import finite
from paceline.types import record


def summarise_sweep(folder: SweepFolder) -> dict[str, Any]:
    """The sweep as it stands: ended, under way, or broken off."""
    about, trials = folder.about(), folder.trials()
    summary: dict[str, Any] = {
        "sweep": folder.name,
        "dir": str(folder.path.resolve()),
        "status": folder.state,
        "study": about["study"],
        "question": about["study"]["question"],
        "started": about.get("started"),
        "host": about.get("host"),
        **tell_trials(about, trials),
        "skipped": about.get("skipped") or {},
    }
    summary["answer"] = answer(summary)
    strict: dict[str, Any] = finite(summary)
    return strict


def tell_trials(about: Mapping[str, Any], trials: Sequence[Trial]) -> dict[str, Any]:
    """What the trials made so far say."""
    cells, study = about["cells"], about["study"]
    bases = {cell["name"]: cell["base"] for cell in cells}
    target = choose_target(_asked(study, cells), bases, trials)
    found = find(bases, trials, target)
    failed = sum(bool(trial.fault) for trial in trials)
    every = len(cells) * study["repeats"]
    crews = {cell["name"]: cell["spec"]["workers"] for cell in cells}
    return {
        "trials": {
            "done": len(trials) - failed,
            "failed": failed,
            "left": max(0, every - len(trials)),
            "seconds": sum(trial.seconds for trial in trials),
        },
        "target": asdict(target) if target else None,
        "cells": [_cell(cell, found[cell["name"]], crews) for cell in cells],
    }


def _asked(
    study: Mapping[str, Any], cells: Sequence[Mapping[str, Any]]
) -> tuple[str, float] | None:
    if study.get("target"):
        return study["target"][0], study["target"][1]
    wanted = {cell["spec"].get("target_accuracy") for cell in cells}
    one = wanted.pop() if len(wanted) == 1 else None
    return ("accuracy", one) if one else None


def _cell(cell: Mapping[str, Any], found: Found, crews: Mapping[str, int]) -> dict[str, Any]:
    throughput = _spread(found.throughput)
    throughput["samples_per_second"] = throughput.pop("value")
    return {
        "cell": cell["name"],
        "base": cell["base"],
        "fields": cell["fields"],
        "spec": cell["spec"],
        "repeats": len(found.done),
        "failed": len(found.failed),
        "throughput": throughput,
        "seconds": {"epoch": _spread(found.epoch), "to_target": _spread(found.to_target)},
        "reached": found.reached,
        "quality": {"accuracy": _spread(found.accuracy), "loss": _spread(found.loss)},
        "gain": _gains(found.gain, crews[cell["name"]] / crews.get(cell["base"], 1)),
        "trials": [record(trial) for trial in found.trials],
    }


def _gains(gain: Gain | None, more: float) -> dict[str, Any] | None:
    """Against the baseline, that has one worker where this cell has `more`; None of itself."""
    if gain is None:
        return None
    speed = _spread(gain.throughput)
    return {
        "throughput": _judged(gain.throughput),
        "efficiency": {end: value and value / more for end, value in speed.items()},
        "epoch": _judged(gain.epoch),
        "to_target": _judged(gain.to_target),
        "accuracy": _judged(gain.accuracy, same=0.0),
        "repeats_needed": gain.needed,
    }


def _judged(found: Spread | None, same: float = 1.0) -> dict[str, Any]:
    """With whether it is a difference, beyond the noise; null where that cannot be told."""
    return _spread(found) | {"different": differs(found, same) if found else None}


def _spread(found: Spread | None) -> dict[str, Any]:
    if found is None:
        return {"value": None, "low": None, "high": None}
    return {"value": found.value, "low": found.low, "high": found.high}
