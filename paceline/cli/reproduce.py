"""`paceline reproduce`: a published table of runs, trained here, cell by cell."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from paceline import env
from paceline.cli.codes import FAILED, INTERRUPTED
from paceline.cli.flags import TELLING, Debug, Json, Out, spec_flags
from paceline.cli.telling import observer, remark, show, show_json
from paceline.errors import RequestError, RunFailed
from paceline.report.grids import Grid, grid_named
from paceline.report.layout import stacked
from paceline.report.reproduced import (
    Repeated,
    as_csv,
    as_markdown,
    as_object,
    beside_grid,
    called,
    what_came,
)
from paceline.report.words import duration, many
from paceline.spec import RunSpec

Name = Annotated[str, typer.Argument(metavar="NAME", help="the published table: lenet-2019")]
Markdown = Annotated[
    Path | None,
    typer.Option(
        "--md", metavar="FILE", help="write the table as Markdown too", rich_help_panel=TELLING
    ),
]
Csv = Annotated[
    Path | None,
    typer.Option(
        "--csv", metavar="FILE", help="write the table as CSV too", rich_help_panel=TELLING
    ),
]


@spec_flags("epochs", "seed", usual={"epochs": "as published"})
def reproduce(
    name: Name,
    *,
    given: dict[str, Any],
    out: Out = None,
    md: Markdown = None,
    csv: Csv = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Train every run of a published table and show ours beside it. Goes on where it broke off.

    $ paceline reproduce lenet-2019
    $ paceline reproduce lenet-2019 --epochs 1 --seed 3 --out trial
    $ paceline reproduce lenet-2019 --md lenet.md --csv lenet.csv
    """
    grid = grid_named(name)
    specs = [RunSpec(**{**grid.spec, **cell.fields, **given}) for cell in grid.cells()]
    for file in (md, csv):
        if file and not file.absolute().parent.is_dir():
            raise RequestError(f"cannot write '{file}': there is no folder '{file.parent}'.")

    root = out or env.runs_dir()
    rows = _train(grid, specs, root)
    title = f"{grid.title}, {many(specs[0].epochs or 0, 'epoch')}: ours, and {grid.year}"

    from paceline.store.atomic import write_atomic

    if md:
        write_atomic(md, as_markdown(title, grid, rows))
    if csv:
        write_atomic(csv, as_csv(grid, rows))
    if json:
        show_json(as_object(name, grid, rows))
    else:
        remark("")
        _tell(title, grid, rows, root)
    if any(row.fault for row in rows):
        raise typer.Exit(FAILED)


def _train(grid: Grid, specs: list[RunSpec], root: Path) -> list[Repeated]:
    """Every cell: as it was found, trained now, or failed."""
    from paceline.api import execute
    from paceline.store.finished import finished_run

    found = [finished_run(root, spec) for spec in specs]
    left = sum(run is None for run in found)
    if left < len(specs):
        remark(f"found {many(len(specs) - left, 'finished cell')} in '{root}'.")
    rows: list[Repeated] = []
    began, trained = time.monotonic(), 0
    for i, (cell, spec, run) in enumerate(zip(grid.cells(), specs, found, strict=True), start=1):
        if run is not None:
            rows.append(Repeated(cell=cell, run=run))
            continue
        each = (time.monotonic() - began) / trained if trained else None
        soon = f", about {duration(each * (left - trained))} left" if each else ""
        remark(f"{i} of {len(specs)}: {called(cell)}{soon}")
        try:
            done = execute(spec, out=root, observer=observer(quiet=False))
        except RunFailed as wrong:
            remark(f"failed: {wrong}")
            rows.append(Repeated(cell=cell, fault=str(wrong)))
        else:
            if done.status == "stopped":
                remark(f"stopped; the same command goes on with what lies in '{root}'.")
                raise typer.Exit(INTERRUPTED)
            rows.append(Repeated(cell=cell, run=done.summary))
        trained += 1
    return rows


def _tell(title: str, grid: Grid, rows: list[Repeated], root: Path) -> None:
    show(
        stacked(
            Text(title, style="bold"),
            beside_grid(grid, rows),
            Text(f"{grid.year}: {grid.source}", style="dim"),
            Text(what_came(grid, rows), style="bold"),
            Text(f"recorded in {root}", style="dim"),
        )
    )
