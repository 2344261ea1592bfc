"""Runs or sweeps beside each other: two as `paceline compare` tells it, more as charts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from paceline.diagnose.records import Records, read
from paceline.errors import RequestError
from paceline.report.compare_tables import apart_columns, result_columns
from paceline.report.compared import compare
from paceline.report.layout import Column
from paceline.report.sides import sides
from paceline.report.summary import summarise
from paceline.report.words import number, percent, rate
from paceline.store.folder import RunFolder
from paceline.store.lookup import kind_of
from paceline.web.drawn import of_several

MOST = 8  # that colours and symbols still tell apart


def compared(paths: Sequence[Path]) -> dict[str, Any]:
    """What the page shows. RequestError if these cannot be compared."""
    if not 2 <= len(paths) <= MOST:
        raise RequestError(f"Tick two to {MOST} runs, or two sweeps, to compare them.")
    kinds = {kind_of(path) for path in paths}
    if "sweep" in kinds and (len(paths) > 2 or len(kinds) > 1):
        raise RequestError("Tick two sweeps, or only runs: a sweep is compared with a sweep.")
    found: dict[str, Any] = {"sentence": None, "tables": [], "charts": []}
    if len(paths) == 2:
        told = compare(*sides(*paths))
        found["sentence"] = told["sentence"]
        found["tables"] = [
            (first.title, [replace(first, title=""), *rest])
            for first, *rest in map(result_columns, told["cells"])
            if first.cells
        ]
        for title, apart in (("What was asked", told["spec"]), ("Where it ran", told["origin"])):
            found["tables"].append((title, apart_columns("", apart) if apart else []))
    if "sweep" not in kinds:
        runs = [_read(RunFolder.open(path)) for path in paths]
        found["charts"] = of_several(runs)
        if len(paths) > 2:
            found["tables"] = [("What came of it", _table([summary for _, summary in runs]))]
    return found


def _read(folder: RunFolder) -> tuple[Records, dict[str, Any]]:
    records = read(folder)
    return records, summarise(folder, records)


def _table(summaries: Sequence[dict[str, Any]]) -> list[Column]:
    specs = [summary["spec"] for summary in summaries]
    return [
        Column(title="run", cells=[summary["run"] for summary in summaries], words=True),
        Column(title="strategy", cells=[spec["strategy"] for spec in specs], words=True),
        Column(title="workers", cells=[number(spec["workers"]) for spec in specs]),
        Column(title="speed", cells=[rate(each["throughput"]) for each in summaries]),
        Column(
            title="accuracy", unit="%", cells=[percent(s["quality"]["accuracy"]) for s in summaries]
        ),
    ]
