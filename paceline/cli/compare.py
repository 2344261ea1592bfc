"""`paceline compare`: two runs or two sweeps, and which of their differences are any."""

from __future__ import annotations

from typing import Annotated

import typer

from paceline import env
from paceline.cli.flags import Debug, Json, Out
from paceline.cli.telling import show, show_json

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
    from paceline.report.sides import sides
    from paceline.store.lookup import locate

    root = out or env.runs_dir()
    found = compared(*sides(*(locate(root, name, "run", "sweep") for name in (first, second))))
    if json:
        show_json(found)
    else:
        show(compare_report(found))
