"""Figures that others published of the same runs, beside ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paceline.report.beside import beside_columns
from paceline.report.grids import GRIDS
from paceline.report.layout import Column
from paceline.report.page.document import Grid
from paceline.report.published import published_softmax, softmax_source
from paceline.report.reproduced import Repeated, beside_grid_columns
from paceline.tasks.catalog import data_of

SOFTMAX = ("softmax", "mnist")


def beside(summaries: Sequence[Mapping[str, Any]]) -> list[Grid]:
    """A table for each that was published of some of these runs."""
    return [*_softmax(summaries), *_grids(summaries)]


def _softmax(summaries: Sequence[Mapping[str, Any]]) -> list[Grid]:
    """Role by role, of runs with as many workers as were published."""
    crews: dict[str, int] = {}
    for role in published_softmax():
        crews[role.strategy] = crews.get(role.strategy, 0) + role.role.startswith("worker-")
    same = [
        run
        for run in summaries
        if (run["spec"]["task"], _data(run["spec"])) == SOFTMAX
        and crews.get(run["spec"]["strategy"]) == run["spec"]["workers"]
    ]
    if not same:
        return []
    ours = {f"{run['spec']['epochs']} epochs, batch {run['spec']['batch']}" for run in same}
    return [
        Grid(
            caption="Each of our figures, and to its right the one published in 2019",
            columns=beside_columns(same),
            note=f"2019: {softmax_source()} Ours: {'; '.join(sorted(ours))}.",
        )
    ]


def _grids(summaries: Sequence[Mapping[str, Any]]) -> list[Grid]:
    """Published cells that some run repeats."""
    found = []
    for grid in GRIDS.values():
        rows = [
            Repeated(cell=cell, run=run)
            for cell in grid.cells()
            for run in summaries
            if _fits({**run["spec"], "data": _data(run["spec"])}, {**grid.spec, **cell.fields})
        ]
        if rows:
            strategies = [row.run["spec"]["strategy"] for row in rows if row.run]
            found.append(
                Grid(
                    caption=f"{grid.title}: ours, and as published in {grid.year}",
                    columns=[
                        Column(title="strategy", cells=strategies, words=True),
                        *beside_grid_columns(grid, rows),
                    ],
                    note=f"{grid.year}: {grid.source}",
                )
            )
    return found


def _fits(spec: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return all(spec.get(name) == value for name, value in wanted.items())


def _data(spec: Mapping[str, Any]) -> str | None:
    return spec.get("data") or data_of(spec["task"])
