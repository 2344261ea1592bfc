"""An LSTM that tells good reviews from bad ones, on rented machines, 2019."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from paceline.report.printed import Printed
from paceline.report.published import records_of, rows_of, source_of

COSTS = "sentiment_cost_2019.csv"
EPOCHS = "sentiment_epochs_2019.csv"
SHAPES = "sentiment_shape_2019.csv"
PREPARATIONS = "sentiment_prep_2019.csv"


@dataclass(frozen=True, slots=True, kw_only=True)
class RentedRun:
    """Ten epochs on machines that were counted by kind, with hours and price as published."""

    experiment: str
    counted: Mapping[str, int]
    balanced: bool
    seconds: Printed
    hours: Printed
    usd: Printed


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """An epoch on one GPU, and how good the model was after it."""

    epoch: int
    seconds: Printed
    test_accuracy_pct: float
    test_f1: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Four GPUs in one, two or four machines; the speedup is over one GPU."""

    machines: int
    gpus_per_machine: int
    minutes_per_epoch: Printed
    speedup: Printed


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparation:
    """Minutes to prepare a share of the reviews; None where the machines did not hold out."""

    share_of_data_pct: int
    machines: int
    minutes: Printed | None


def rented_runs() -> list[RentedRun]:
    kinds = machine_prices()
    return [
        RentedRun(
            experiment=row["experiment"],
            counted={kind: int(row[kind]) for kind in kinds if int(row[kind])},
            balanced=row["balanced"] == "yes",
            seconds=Printed(row["seconds"]),
            hours=Printed(row["hours"]),
            usd=Printed(row["usd"]),
        )
        for row in rows_of(COSTS)
    ]


def machine_prices() -> dict[str, float]:
    """US dollars an hour, by kind of machine, as the file's own comment tells them."""
    _, _, told = source_of(COSTS).partition("Prices per hour: ")
    return {kind: float(usd) for kind, usd in re.findall(r"(\w+\.\w+) (\d+\.\d+)", told)}


def epochs() -> list[Epoch]:
    return records_of(EPOCHS, Epoch)


def shapes() -> list[Shape]:
    return records_of(SHAPES, Shape)


def preparations() -> list[Preparation]:
    return records_of(PREPARATIONS, Preparation)
