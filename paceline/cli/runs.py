"""`paceline runs`: the runs there are."""

from __future__ import annotations

from dataclasses import asdict

import typer

from paceline import env
from paceline.cli.flags import Debug, Json, Out
from paceline.cli.telling import show, show_json
from paceline.report.tables import runs_table


def runs(*, out: Out = None, json: Json = False, debug: Debug = False) -> None:
    """List the recorded runs, newest last.

    $ paceline runs
    $ paceline runs --out /data/runs --json
    """
    from paceline.store.listing import list_runs

    root = out or env.runs_dir()
    entries = list_runs(root)
    if json:
        show_json([asdict(entry) for entry in entries])
    elif entries:
        show(runs_table(entries))
    else:
        typer.echo(f"no runs in '{root}' yet: 'paceline run' makes one.", err=True)
