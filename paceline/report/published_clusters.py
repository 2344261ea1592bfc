"""Parameter servers on clusters: an image classifier of 2021, and click prediction of 2017."""

from __future__ import annotations

import re
from dataclasses import dataclass

from paceline.report.published import records_of, rows_of

QUALITY = "image_quality_2021.csv"
CLICKS = "sparse_logreg_2017.csv"
UNITS = {"h": 3600, "m": 60, "s": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityRun:
    """A training of the last layer (`top`) or of the whole network (`all`), somewhere.

    `seconds` is None where it failed, and `fault` then says how.
    """

    trained: str
    where: str
    batch: int
    epochs: int | None
    steps: int | None
    accuracy: float | None
    loss: float | None
    seconds: int | None
    fault: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClickRun:
    """Logistic regression with 33 million features on five machines; ranges as printed."""

    strategy: str
    exchange: str
    seconds_per_iteration: str
    sent_by_model_machine_mb_s: float | None
    received_by_each_other_mb_s: float | None
    idle_cpu_model_machine_pct: float | None
    idle_cpu_others_pct: float | None


def quality_runs() -> list[QualityRun]:
    found = []
    for row in rows_of(QUALITY):
        took = re.findall(r"(\d+)([hms])(?![a-z])", row["time"])
        failed = row["time"].startswith("failed")
        found.append(
            QualityRun(
                trained=row["trained"],
                where=row["where"],
                batch=int(row["batch"]),
                epochs=int(row["epochs"]) if row["epochs"] else None,
                steps=int(row["steps"]) if row["steps"] else None,
                accuracy=float(row["accuracy_pct"]) / 100 if row["accuracy_pct"] else None,
                loss=float(row["loss"]) if row["loss"] else None,
                seconds=None if failed else sum(int(n) * UNITS[unit] for n, unit in took),
                fault=row["time"] if failed else "",
            )
        )
    return found


def click_runs() -> list[ClickRun]:
    return records_of(CLICKS, ClickRun)
