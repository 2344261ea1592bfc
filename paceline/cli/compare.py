"""`paceline compare`: two runs or two sweeps, and which of their differences are any."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from paceline import env
from paceline.cli.flags import Debug, Json, Out
from paceline.cli.telling import show, show_json
from paceline.errors import RequestError

if TYPE_CHECKING:
    from paceline.report.compared import Side
    from paceline.store.sweeps import SweepFolder

HELP = "a run or a sweep: 'last', its folder, or a unique part of its name"
First = Annotated[str, typer.Argument(metavar="A", help=HELP)]
Second = Annotated[str, typer.Argument(metavar="B", help=HELP)]


def compare(
    first: First, second: Second, *, out: Out = None, json: Json = False, debug: Debug = False
) -> None:
    """Tell what differs between two runs or two sweeps, and what of that is noise.

    $ paceline compare ps-sync ps-async
    $ paceline compare runs/20261118-101500-strong-lenet last --json
    """
    from paceline.report.compare_tables import compare_report
    from paceline.report.compared import compare as compared

    root = out or env.runs_dir()
    a, b = _side(root, first), _side(root, second)
    if a.kind != b.kind:
        raise RequestError(
            f"'{a.name}' is a {a.kind} and '{b.name}' a {b.kind}; compare two of the same kind."
        )
    found = compared(a, b)
    if json:
        show_json(found)
    else:
        show(compare_report(found))


def _side(root: Path, name: str) -> Side:
    from paceline.store.lookup import kind_of, locate
    from paceline.store.sweeps import SweepFolder

    path = locate(root, name, "run", "sweep")
    return _sweep(SweepFolder(path)) if kind_of(path) == "sweep" else _run(path)


def _sweep(folder: SweepFolder) -> Side:
    from paceline.report.compared import Side

    about, trials = folder.about(), folder.trials()
    cells = {cell["name"]: [t for t in trials if t.cell == cell["name"]] for cell in about["cells"]}
    specs = [cell["spec"] for cell in about["cells"]]
    same = {k: v for k, v in specs[0].items() if all(spec.get(k) == v for spec in specs)}
    spec = {**same, **{key: about["study"][key] for key in ("repeats", "work", "hold")}}
    return Side(kind="sweep", name=folder.name, about=about, spec=spec, trials=cells)


def _run(path: Path) -> Side:
    from paceline.report.compared import Side
    from paceline.report.summary import summarise
    from paceline.report.trials import curve, figures
    from paceline.store.folder import RunFolder
    from paceline.store.lookup import kind_of
    from paceline.store.sweeps import SweepFolder, Trial

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
