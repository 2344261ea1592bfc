"""`paceline runs`: the runs and sweeps there are."""

from __future__ import annotations

from dataclasses import asdict

from paceline import env
from paceline.cli.flags import Debug, Json, Out
from paceline.cli.telling import remark, show, show_json
from paceline.report.layout import stacked
from paceline.report.sweep_tables import sweeps_table
from paceline.report.tables import runs_table


def runs(*, out: Out = None, json: Json = False, debug: Debug = False) -> None:
    """List the recorded runs and sweeps, newest first.

    $ paceline runs
    $ paceline runs --out /data/runs --json
    """
    from paceline.store.listing import list_runs
    from paceline.store.sweeps import list_sweeps

    root = out or env.runs_dir()
    entries, sweeps = list_runs(root), list_sweeps(root)
    if json:
        told = [asdict(e) | {"kind": "run", "path": str(e.path)} for e in entries]
        show_json(told + [asdict(e) | {"kind": "sweep", "path": str(e.path)} for e in sweeps])
    elif entries or sweeps:
        tables = (
            runs_table(entries) if entries else None,
            sweeps_table(sweeps) if sweeps else None,
        )
        show(stacked(*tables))
    else:
        remark(f"no runs in '{root}' yet; start one with paceline run.")
