"""A study from a TOML file, ready-made or the user's own, and from flags on top.

name, question, work, hold, repeats      see Study
target = { accuracy = 0.97 }             or a loss
[run]                                    fields of a spec that all cells share
[vary]                                   fields with the values they take
[baseline]                               what others are held against
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

from paceline.errors import RequestError, UnknownName, unknown
from paceline.study.study import Study

KEYS = ("name", "question", "work", "hold", "repeats", "target", "run", "vary", "baseline")
READY = resources.files("paceline.study").joinpath("ready")


def ready_names() -> list[str]:
    return sorted(file.name.removesuffix(".toml") for file in READY.iterdir())


def ready_study(name: str) -> Study:
    """One that comes with the package."""
    if name not in ready_names():
        raise UnknownName("study", name, ready_names())
    return _study(READY.joinpath(f"{name}.toml").read_text("utf-8"), name, name)


def read_study(path: Path) -> Study:
    """One in a file."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as wrong:
        raise RequestError(
            f"cannot read study '{path}': {(wrong.strerror or str(wrong)).lower()}; "
            f"those that are ready-made are named with --study: {', '.join(ready_names())}."
        ) from None
    except UnicodeDecodeError:
        raise RequestError(f"cannot read study '{path}': it is not UTF-8 text.") from None
    return _study(text, str(path), path.stem)


def with_fields(study: Study, given: Mapping[str, Any]) -> Study:
    """The same study where some fields are said otherwise: a tuple is varied, all else is fixed.

    What a field was before is forgotten, also where it was one of several set at once.
    """
    run = {name: value for name, value in study.run.items() if name not in given}
    vary = {name: values for name, values in study.vary.items() if name not in given}
    vary = {name: tuple(_less(value, given) for value in vary[name]) for name in vary}
    run |= {name: value for name, value in given.items() if not isinstance(value, tuple)}
    vary |= {name: value for name, value in given.items() if isinstance(value, tuple)}
    if {"epochs", "steps"} & set(given):  # one of them is instead of the other
        run = {k: v for k, v in run.items() if k in given or k not in ("epochs", "steps")}
    return replace(study, run=run, vary=vary)


def _less(value: Any, given: Mapping[str, Any]) -> Any:
    if not isinstance(value, Mapping):
        return value
    return {name: each for name, each in value.items() if name not in given}


def _study(text: str, where: str, name: str) -> Study:
    try:
        told = tomllib.loads(text)
    except tomllib.TOMLDecodeError as wrong:
        raise RequestError(f"'{where}' is not valid TOML: {wrong}.") from None
    faults = [unknown("key of a study", key, KEYS) for key in told if key not in KEYS]
    tables = {key: told.get(key, {}) for key in ("run", "vary", "baseline")}
    faults += [f"'{key}' must be a table." for key, t in tables.items() if not isinstance(t, dict)]
    if not faults:
        faults += [
            f"[vary] {field}: must be a list of values."
            for field, values in tables["vary"].items()
            if not isinstance(values, list)
        ]
    for key, kind, what in (
        *(((key, str, "a string")) for key in ("name", "question", "work", "hold")),
        ("repeats", int, "a whole number"),
    ):
        if key in told and type(told[key]) is not kind:
            faults.append(f"{key} = {told[key]!r}: must be {what}.")
    target = _target(told.get("target"))
    if "target" in told and target is None:
        faults.append(f"target = {told['target']}: must be a table such as {{ accuracy = 0.97 }}.")
    if faults:
        raise RequestError("\n".join(f"'{where}': {fault}" for fault in faults))
    run, vary, baseline = (
        {field.replace("-", "_"): value for field, value in tables[key].items()}
        for key in ("run", "vary", "baseline")
    )
    values = {field: tuple(each) for field, each in vary.items()}
    rest = {key: told[key] for key in ("question", "work", "hold", "repeats") if key in told}
    return Study(
        name=told.get("name", name), run=run, vary=values, baseline=baseline, target=target, **rest
    )


def _target(told: Any) -> tuple[str, float] | None:
    if not isinstance(told, dict) or len(told) != 1:
        return None
    (metric, value), *_ = told.items()
    return (metric, float(value)) if type(value) in (int, float) else None
