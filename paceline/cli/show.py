"""`paceline show`: every table of a run or a sweep, from its folder alone."""

from __future__ import annotations

from typing import Annotated

import typer

from paceline import env
from paceline.cli.flags import Debug, Json, Out
from paceline.cli.outcome import tell_summary
from paceline.cli.telling import show as tell
from paceline.cli.telling import show_json

Name = Annotated[
    str, typer.Argument(metavar="RUN", help="'last', a run's folder, or a unique part of its name")
]
Either = Annotated[
    str,
    typer.Argument(
        metavar="RUN", help="'last', the folder of a run or a sweep, or a unique part of its name"
    ),
]


def show(run: Either, *, out: Out = None, json: Json = False, debug: Debug = False) -> None:
    """Show a recorded run or sweep again.

    $ paceline show last
    $ paceline show ps-async --json
    $ paceline show strong-lenet
    """
    from paceline.report.summary import summarise
    from paceline.report.sweep_tables import sweep_report
    from paceline.report.swept import summarise_sweep
    from paceline.store.folder import RunFolder
    from paceline.store.lookup import kind_of, locate
    from paceline.store.sweeps import SweepFolder

    root = out or env.runs_dir()
    path = locate(root, run, "run", "sweep")
    if kind_of(path) == "sweep":
        swept = summarise_sweep(SweepFolder(path))
        show_json(swept) if json else tell(sweep_report(swept))
        return
    summary = summarise(RunFolder.open(path))
    if json:
        show_json(summary)
    else:
        tell_summary(summary, root)
