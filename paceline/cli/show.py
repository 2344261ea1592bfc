"""`paceline show`: every table of a run, from its folder alone."""

from __future__ import annotations

from typing import Annotated

import typer

from paceline import env
from paceline.cli.flags import Debug, Json, Out
from paceline.cli.outcome import tell_summary
from paceline.cli.telling import show_json

Name = Annotated[
    str, typer.Argument(metavar="RUN", help="'last', a run's folder, or a unique part of its name")
]


def show(run: Name, *, out: Out = None, json: Json = False, debug: Debug = False) -> None:
    """Show a recorded run again.

    $ paceline show last
    $ paceline show ps-async --json
    """
    from paceline.report.summary import summarise
    from paceline.store.folder import RunFolder

    root = out or env.runs_dir()
    summary = summarise(RunFolder.find(root, run))
    if json:
        show_json(summary)
    else:
        tell_summary(summary, root)
