"""Figures others published, to stand beside ours. They ship with the package, sources included."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from importlib import resources


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
        for row in csv.DictReader(lines_of("mnist_softmax_2019.csv", comments=False))
    ]


def softmax_source() -> str:
    """Where and how the softmax figures were measured."""
    return source_of("mnist_softmax_2019.csv")


def source_of(name: str) -> str:
    """What a published file says of itself."""
    return " ".join(line.lstrip("# ") for line in lines_of(name, comments=True))


def lines_of(name: str, *, comments: bool) -> list[str]:
    """The comments of a published file, or all else."""
    text = resources.files("paceline.report").joinpath("published", name).read_text("utf-8")
    return [line for line in text.splitlines() if line.startswith("#") == comments]
