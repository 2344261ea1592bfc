"""A study's cells: what it varies, multiplied out, each a spec of its own.

Cells that come out alike are one. Each has a baseline: the cell with the same fields but for those
that the study's `baseline` sets. It is added where the study's own lists do not have it, and what
its strategy has no use for is left out of it. One worker exchanges with nobody, whatever the
strategy: where `single` is the baseline, it is the only cell with one worker.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from paceline.errors import SpecError
from paceline.exchange.catalog import STRATEGIES
from paceline.spec import RunSpec
from paceline.spec.check import WHAT
from paceline.study.study import Study

Fields = dict[str, Any]

# A cell that breaks off is run again from its start, so it needs no checkpoints.
USUAL: Fields = {"checkpoint_every": 0.0}
FIRST = ("strategy", "workers")  # in a cell's name
ALONE = "single"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One combination. `name` is its own within the study; `base` is its baseline's name."""

    name: str
    base: str
    fields: Mapping[str, Any]  # those that set it apart
    spec: RunSpec

    def repeat(self, repeat: int) -> RunSpec:
        """What its run of that repeat does. The seed moves on, in all cells alike."""
        if "seed" in self.fields:
            return self.spec
        return self.spec.with_(seed=(self.spec.seed + repeat) % 2**32)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The cells that can be run, baselines first; and what is wrong with others, by name."""

    cells: tuple[Cell, ...]
    faults: Mapping[str, tuple[str, ...]]

    def insist(self) -> None:
        """SpecError if there is a fault anywhere. One that all cells have is told once."""
        names: dict[str, list[str]] = {}
        for name, faults in self.faults.items():
            for fault in faults:
                names.setdefault(fault, []).append(name)
        every = len(self.cells) + len(self.faults)
        if names:
            raise SpecError(
                fault if len(those) == every else f"{'; '.join(those)}: {fault}"
                for fault, those in names.items()
            )


def plan(study: Study) -> Plan:
    """Multiply a study out. All faults are found; none is raised here."""
    found: dict[str, Fields] = {}
    bases: dict[str, str] = {}
    shown = _shown(study)
    for fields in _combined(study):
        base = _base(study, fields)
        own = base if base and _is_base(study, fields) else fields
        name = called(own, shown)
        found.setdefault(name, own)
        bases[name] = called(base, shown) if base else name
        if base:
            found.setdefault(bases[name], base)
            bases[bases[name]] = bases[name]
    cells: list[Cell] = []
    faults: dict[str, tuple[str, ...]] = {}
    for name in sorted(found, key=lambda name: name != bases[name]):
        try:
            spec = RunSpec(**{**USUAL, **_sized(study, found[name])})
        except SpecError as wrong:
            faults[name] = wrong.faults
            continue
        values = spec.model_dump()
        apart = {field: values[field] for field in shown}
        cells.append(Cell(name=name, base=bases[name], fields=apart, spec=spec))
    if not study.baseline:  # the first that can be run
        cells = [replace(cell, base=cells[0].name) for cell in cells]
    return Plan(cells=tuple(cells), faults=faults)


def called(fields: Mapping[str, Any], shown: tuple[str, ...]) -> str:
    """`ps-sync, 2 workers, batch 64`"""
    told = [_told(name, fields[name]) for name in shown if fields.get(name) is not None]
    if "workers" in shown and fields.get("strategy") == ALONE and fields.get("workers") == 1:
        told.remove(_told("workers", 1))
    return ", ".join(told) or "as the task has it"


def _told(name: str, value: Any) -> str:
    words = name.replace("_", " ")
    match name, value:
        case "strategy", _:
            return str(value)
        case (("workers" | "servers"), int()):
            return f"{value} {words[:-1] if value == 1 else words}"
        case _, bool():
            return words if value else f"no {words}"
        case _, list() | tuple():
            return f"{words} {' '.join(map(str, value))}"
    return f"{words} {value}"


def _shown(study: Study) -> tuple[str, ...]:
    """The fields that set cells apart."""
    names: dict[str, None] = {}
    for name, values in study.vary.items():
        for value in values:
            names |= dict.fromkeys(value if isinstance(value, Mapping) else [name])
    if study.baseline:
        names |= dict.fromkeys(study.baseline)
    return tuple(sorted(names, key=lambda name: FIRST.index(name) if name in FIRST else len(FIRST)))


def _combined(study: Study) -> Iterator[Fields]:
    for values in product(*study.vary.values()):
        fields = dict(study.run)
        for name, value in zip(study.vary, values, strict=True):
            fields |= value if isinstance(value, Mapping) else {name: value}
        yield fields


def _base(study: Study, fields: Fields) -> Fields | None:
    """A cell's baseline: not harmed on purpose, without what its strategy does not have."""
    if not study.baseline:
        return None
    base = {**fields, **study.baseline}
    kind = STRATEGIES.get(base.get("strategy", ""))
    if kind:
        useless = {"inject", *(name for name in WHAT if name not in kind.options)}
        if base.get("transport") not in kind.transports:
            useless.add("transport")
        base = {name: value for name, value in base.items() if name not in useless}
    return base | dict(study.baseline)


def _is_base(study: Study, fields: Fields) -> bool:
    if study.baseline.get("strategy") != ALONE:
        return False
    return fields.get("workers", 1) == 1 or fields.get("strategy") == ALONE


def _sized(study: Study, fields: Fields) -> Fields:
    """The same for its number of workers: what the study holds fixed is not a field of a spec."""
    workers, sized, faults = fields.get("workers", 1), dict(fields), []
    if not isinstance(workers, int):
        return sized  # told as a fault of its own
    if study.hold == "global-batch":
        batch = fields.get("batch")
        if not isinstance(batch, int):
            faults.append("--hold global-batch: say how large it is, with --batch.")
        elif batch % workers:
            faults.append(f"--batch {batch}: {workers} workers cannot share it evenly.")
        else:
            sized["batch"] = batch // workers
    if study.work == "per-worker" and fields.get("steps") is None:
        epochs = fields.get("epochs")
        if isinstance(epochs, int):
            sized["epochs"] = epochs * workers
        else:
            faults.append("say how much each worker has to do: --steps, or --epochs of one alone.")
    if faults:
        raise SpecError(faults)
    return sized
