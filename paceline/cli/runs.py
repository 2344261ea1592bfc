"""`paceline runs`: the runs there are."""

from __future__ import annotations

from dataclasses import asdict

from paceline import env
from paceline.cli.flags import Debug, Json, Out
from paceline.cli.telling import remark, show, show_json
from paceline.report.tables import runs_table


def runs(*, out: Out = None, json: Json = False, debug: Debug = False) -> None:
    """List the recorded runs, newest first.

    $ paceline runs
    $ paceline runs --out /data/runs --json
    """
    from paceline.store.listing import list_runs

    root = out or env.runs_dir()
    entries = list_runs(root)
    if json:
        show_json([asdict(entry) | {"path": str(entry.path)} for entry in entries])
    elif entries:
        show(runs_table(entries))
    else:
        remark(f"no runs in '{root}' yet; start one with paceline run.")
