"""Published tables of runs that can be repeated. Another one is an entry here, and its file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from paceline.errors import UnknownName
from paceline.report.published import rows_of, source_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One published run: the fields of a spec that set it apart, and what came of it."""

    fields: Mapping[str, int]
    accuracy: float
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """A table in `published/`, whose columns `accuracy` and `seconds` are what was measured.

    `spec` has the fields that all its runs share; `columns` says which field another column is.
    """

    title: str
    year: int
    file: str
    spec: Mapping[str, Any]
    columns: Mapping[str, str]

    @property
    def source(self) -> str:
        return source_of(self.file)

    def cells(self) -> list[Cell]:
        return [
            Cell(
                fields={field: int(row[column]) for column, field in self.columns.items()},
                accuracy=float(row["accuracy"]),
                seconds=float(row["seconds"]),
            )
            for row in rows_of(self.file)
        ]


GRIDS = {
    "lenet-2019": Grid(
        title="LeNet on MNIST",
        year=2019,
        file="mnist_lenet_2019.csv",
        spec={"task": "lenet", "data": "mnist", "epochs": 6},
        columns={"base_batch": "batch", "machines": "workers"},
    ),
}


def grid_named(name: str) -> Grid:
    if name not in GRIDS:
        raise UnknownName("published table", name, GRIDS)
    return GRIDS[name]
