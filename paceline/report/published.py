"""Figures others published, to stand beside ours. They ship with the package, sources included."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from typing import Any, TypeVar, get_type_hints

from paceline.report.printed import Printed

Record = TypeVar("Record")


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedRole:
    """One role of a published run. Ranges such as `25-26` stay as they were printed."""

    strategy: str
    role: str
    accuracy: float | None
    seconds: float | None
    cpu_pct: str
    memory_mb: str
    network_mbit_s: str


def published_softmax() -> list[PublishedRole]:
    """Softmax regression on MNIST, 2019: one worker, three synchronous, three asynchronous."""
    return [
        PublishedRole(
            strategy=row["strategy"],
            role=row["role"],
            accuracy=float(row["accuracy_pct"]) / 100 if row["accuracy_pct"] else None,
            seconds=float(row["seconds"]) if row["seconds"] else None,
            cpu_pct=row["cpu_pct"],
            memory_mb=row["memory_mb"],
            network_mbit_s=row["network_mbit_s"],
        )
        for row in rows_of("mnist_softmax_2019.csv")
    ]


def softmax_source() -> str:
    """Where and how the softmax figures were measured."""
    return source_of("mnist_softmax_2019.csv")


# Any file.


def source_of(name: str) -> str:
    """What a published file says of itself."""
    return " ".join(line.lstrip("# ") for line in lines_of(name, comments=True))


def records_of(name: str, kind: type[Record]) -> list[Record]:
    """A published file as records, whose fields are called as its columns are."""
    fields = get_type_hints(kind)
    return [
        kind(**{field: READ[hint](row[field]) for field, hint in fields.items()})
        for row in rows_of(name)
    ]


def rows_of(name: str) -> list[dict[str, str]]:
    """The rows of a published file, as text by column."""
    return list(csv.DictReader(lines_of(name, comments=False)))


def lines_of(name: str, *, comments: bool) -> list[str]:
    """The comments of a published file, or all else."""
    text = resources.files("paceline.report").joinpath("published", name).read_text("utf-8")
    return [line for line in text.splitlines() if line.startswith("#") == comments]


def _or_none(read: Callable[[str], Any]) -> Callable[[str], Any]:
    """For cells that may be blank."""
    return lambda cell: read(cell) if cell else None


# How a cell is read, by the type of its field.
READ: dict[Any, Callable[[str], Any]] = {
    str: str,
    int: int,
    float: float,
    Printed: Printed,
    int | None: _or_none(int),
    float | None: _or_none(float),
    Printed | None: _or_none(Printed),
}
