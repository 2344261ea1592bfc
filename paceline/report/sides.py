"""A run or a sweep in its folder, as one side of a comparison."""

from __future__ import annotations

from pathlib import Path

from paceline.errors import RequestError
from paceline.report.compared import Side
from paceline.report.summary import summarise
from paceline.report.trials import curve, figures
from paceline.store.folder import RunFolder
from paceline.store.lookup import kind_of
from paceline.store.sweeps import SweepFolder, Trial


def sides(one: Path, other: Path) -> tuple[Side, Side]:
    """Both, or RequestError if they are not of the same kind."""
    a, b = side(one), side(other)
    if a.kind != b.kind:
        raise RequestError(
            f"'{a.name}' is a {a.kind} and '{b.name}' a {b.kind}; compare two of the same kind."
        )
    return a, b


def side(path: Path) -> Side:
    return _sweep(SweepFolder(path)) if kind_of(path) == "sweep" else _run(path)


def _sweep(folder: SweepFolder) -> Side:
    about, trials = folder.about(), folder.trials()
    cells = {cell["name"]: [t for t in trials if t.cell == cell["name"]] for cell in about["cells"]}
    specs = [cell["spec"] for cell in about["cells"]]
    same = {k: v for k, v in specs[0].items() if all(spec.get(k) == v for spec in specs)}
    spec = {**same, **{key: about["study"][key] for key in ("repeats", "work", "hold")}}
    return Side(kind="sweep", name=folder.name, about=about, spec=spec, trials=cells)


def _run(path: Path) -> Side:
    folder = RunFolder.open(path)
    summary = summarise(folder)
    own = Trial(
        cell=folder.name,
        repeat=0,
        run=folder.name,
        seconds=summary["seconds"]["total"] or 0.0,
        figures=figures(folder, summary),
        curve=curve(folder, summary),
    )
    trials, sweep = {folder.name: [own]}, None
    inside = path.resolve().parent.parent
    if kind_of(inside) == "sweep":
        all_trials = SweepFolder(inside).trials()
        cell = next((t.cell for t in all_trials if t.run == folder.name and not t.fault), None)
        if cell:
            trials, sweep = {cell: [t for t in all_trials if t.cell == cell]}, inside.name
    return Side(
        kind="run",
        name=folder.name,
        about=folder.read_spec(),
        spec=summary["spec"],
        trials=trials,
        sweep=sweep,
        cell=next(iter(trials)),
    )
