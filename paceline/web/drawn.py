"""The charts of a run, of a sweep and of several runs: which there are, and of what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paceline.diagnose.records import Records
from paceline.report.charts.chart import Chart
from paceline.report.charts.faults import faults
from paceline.report.charts.learning import Learner, accuracy, learner, training_loss
from paceline.report.charts.phases import phases, spent_by
from paceline.report.charts.resources import resources
from paceline.report.charts.scaling import curves, efficiency, speedup
from paceline.report.charts.staleness import staleness
from paceline.report.charts.throughput import Rate, over_time, side_by_side
from paceline.report.charts.traffic import traffic
from paceline.store.live import UNDER_WAY

POINTS = 300  # a line
LIVE_POINTS = 120  # of a run under way, whose lines are made and drawn again and again


def of_run(records: Records, summary: Mapping[str, Any]) -> list[Chart]:
    """Those that have something to show."""
    points = LIVE_POINTS if summary["status"] in UNDER_WAY else POINTS
    learners = [learner_of(records, summary["run"])]
    roles = summary["roles"]
    found = [
        over_time(records.steps, points),
        training_loss(learners, points),
        accuracy(learners),
        phases(spent_by(roles)),
        resources(records.resources, points),
        traffic(roles),
        staleness(roles),
        faults(summary["faults"], summary["seconds"]["total"]),
    ]
    return [chart for chart in found if chart is not None]


def of_sweep(summary: Mapping[str, Any]) -> list[Chart]:
    cells = summary["cells"]
    rates = [
        Rate(
            name=cell["cell"],
            strategy=cell["spec"]["strategy"],
            value=cell["throughput"]["samples_per_second"],
            low=cell["throughput"]["low"],
            high=cell["throughput"]["high"],
        )
        for cell in cells
        if cell["throughput"]["samples_per_second"] is not None
    ]
    found = [side_by_side(rates), speedup(curves(cells)), efficiency(curves(cells))]
    return [chart for chart in found if chart is not None]


def of_several(runs: Sequence[tuple[Records, Mapping[str, Any]]]) -> list[Chart]:
    """Beside each other."""
    rates = [
        Rate(
            name=summary["run"],
            strategy=summary["spec"]["strategy"],
            value=summary["throughput"]["samples_per_second"],
            low=summary["throughput"]["low"],
            high=summary["throughput"]["high"],
        )
        for _, summary in runs
        if summary["throughput"]["samples_per_second"] is not None
    ]
    learners = [learner_of(records, summary["run"]) for records, summary in runs]
    spent = {
        f"{'AB'[n] if len(runs) == 2 else n + 1}: {role}": own
        for n, (_, summary) in enumerate(runs)
        for role, own in spent_by(summary["roles"]).items()
    }
    found = [
        side_by_side(rates),
        training_loss(learners, POINTS),
        accuracy(learners),
        phases(spent),
    ]
    return [chart for chart in found if chart is not None]


def learner_of(records: Records, name: str) -> Learner:
    begin = records.training[0] if records.training else 0.0
    return learner(
        name,
        records.spec.strategy,
        list(records.steps.values()),
        records.scores,
        begin,
        records.facts.get("samples"),
    )
