"""A published table with our runs beside it: for the terminal, as JSON, Markdown and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import RenderableType

from paceline.report.grids import Cell, Grid
from paceline.report.layout import Column, table
from paceline.report.words import Summary, many, number, percent

FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeated:
    """A published cell and our run of it, or why there is none."""

    cell: Cell
    run: Summary | None = None
    fault: str = ""

    @property
    def accuracy(self) -> float | None:
        return self.run["quality"].get("accuracy") if self.run else None

    @property
    def seconds(self) -> float | None:
        return self.run["seconds"].get("train") if self.run else None


def called(cell: Cell) -> str:
    """`batch 512, 3 workers`"""
    told = [
        many(value, "worker") if field == "workers" else f"{field} {value:,}"
        for field, value in cell.fields.items()
    ]
    return ", ".join(told)


def beside_grid(grid: Grid, rows: Sequence[Repeated]) -> RenderableType:
    """One row a cell; each of our figures has the published one to its right."""
    columns = beside_grid_columns(grid, rows)
    return table(columns, groups=columns[0].cells)


def beside_grid_columns(grid: Grid, rows: Sequence[Repeated]) -> list[Column]:
    """What sets a cell apart, then pairs of figures: ours and theirs."""
    year = str(grid.year)
    right = [FAILED if row.fault else percent(row.accuracy) for row in rows]
    return [
        *(
            Column(title=field, cells=[number(row.cell.fields[field]) for row in rows])
            for field in grid.columns.values()
        ),
        Column(title="accuracy", unit="%", cells=right),
        Column(title=year, cells=[percent(row.cell.accuracy) for row in rows], style="dim"),
        Column(title="training", unit="s", cells=[number(row.seconds, 1) for row in rows]),
        Column(title=year, cells=[number(row.cell.seconds, 1) for row in rows], style="dim"),
    ]


def what_came(grid: Grid, rows: Sequence[Repeated]) -> str:
    """One plain sentence: the worst of ours, what was published there, and how far each spread."""
    faults = [row for row in rows if row.fault]
    scored = [(row.accuracy, row) for row in rows if row.accuracy is not None]
    failed = f"{len(faults)} of {many(len(rows), 'cell')} failed" if faults else ""
    if not scored:
        return f"{failed or 'No cell was scored'}."
    least, worst = min(scored, key=lambda pair: pair[0])
    published = [row.cell.accuracy for row in rows]
    ours = [accuracy for accuracy, _ in scored]
    clauses = [
        f"the lowest accuracy is {percent(least)} % ({called(worst.cell)}), where "
        f"{percent(worst.cell.accuracy)} % was published",
        f"from best to worst we lose {percent(max(ours) - least)} points, "
        f"in {grid.year} it was {percent(max(published) - min(published))}",
    ]
    behind = sum(accuracy < row.cell.accuracy for accuracy, row in scored)
    if behind:
        clauses.append(f"{many(behind, 'cell')} of ours fell short of the published one")
    if failed:
        clauses.append(failed)
    told = "; ".join(clauses)
    return f"{told[0].upper()}{told[1:]}."


def as_object(name: str, grid: Grid, rows: Sequence[Repeated]) -> dict[str, Any]:
    """What `paceline reproduce --json` prints."""
    cells = [
        {
            **row.cell.fields,
            "accuracy": row.accuracy,
            "seconds": row.seconds,
            "published": {"accuracy": row.cell.accuracy, "seconds": row.cell.seconds},
            "run": row.run["run"] if row.run else None,
            "fault": row.fault or None,
        }
        for row in rows
    ]
    return {
        "name": name,
        "title": grid.title,
        "source": grid.source,
        "cells": cells,
        "sentence": what_came(grid, rows),
    }


def as_markdown(title: str, grid: Grid, rows: Sequence[Repeated]) -> str:
    columns = beside_grid_columns(grid, rows)
    heads = [
        f"{column.title} ({column.unit})" if column.unit else column.title for column in columns
    ]
    lines = [heads, ["---:"] * len(columns), *zip(*(c.cells for c in columns), strict=True)]
    grid_lines = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    faults = [f"- {called(row.cell)}: {row.fault}" for row in rows if row.fault]
    parts = [f"# {title}", grid_lines, *faults, what_came(grid, rows)]
    return "\n\n".join([*parts, f"{grid.year}: {grid.source}"]) + "\n"


def as_csv(grid: Grid, rows: Sequence[Repeated]) -> str:
    """Plain numbers; what is not known is left empty."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(
        [
            *grid.columns.values(),
            *("accuracy", "published_accuracy", "seconds", "published_seconds", "run", "fault"),
        ]
    )
    for row in rows:
        ours, theirs = (row.accuracy, row.seconds), (row.cell.accuracy, row.cell.seconds)
        figures = [figure for pair in zip(ours, theirs, strict=True) for figure in pair]
        writer.writerow(
            [*row.cell.fields.values(), *figures, row.run["run"] if row.run else "", row.fault]
        )
    return file.getvalue()
