"""A run's chapter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from paceline.diagnose.records import Records, read
from paceline.report.charts.chart import Chart
from paceline.report.charts.faults import faults
from paceline.report.charts.learning import (
    Learner,
    accuracy,
    learner,
    scored_loss,
    training_loss,
)
from paceline.report.charts.phases import phases, spent_by
from paceline.report.charts.resources import resources
from paceline.report.charts.staleness import staleness
from paceline.report.charts.thin import POINTS
from paceline.report.charts.throughput import over_time
from paceline.report.charts.traffic import traffic
from paceline.report.diagnosis import gain_told
from paceline.report.hosts import host_columns
from paceline.report.layout import INSIDE, Column, inside_note
from paceline.report.page.document import Chapter, Grid, Section, section
from paceline.report.page.judged import judged
from paceline.report.page.money import Pricing
from paceline.report.page.published import beside
from paceline.report.page.repeat import repeat_run
from paceline.report.summary import summarise
from paceline.report.tables import header, headline, role_columns
from paceline.report.trials import figures
from paceline.report.words import duration
from paceline.store.folder import RunFolder

EVENTS = 200  # that are listed


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """One run, read once: its records, and what the summary makes of them."""

    about: Mapping[str, Any]
    records: Records
    summary: Mapping[str, Any]
    figures: Mapping[str, float | None]

    @property
    def name(self) -> str:
        return str(self.summary["run"])

    @property
    def learner(self) -> Learner:
        return self.learner_named(self.name)

    def learner_named(self, name: str) -> Learner:
        records = self.records
        alone = not records.spec.kind.shared
        return learner(
            name,
            records.spec.strategy,
            list(records.steps.values()),
            [s for s in records.scores if not alone or s.role == "worker-0"],
            records.training[0] if records.training else 0.0,
            records.facts.get("samples"),
        )


def told_of(folder: RunFolder) -> Told:
    summary = summarise(folder)
    return Told(
        about=folder.read_spec(),
        records=read(folder),
        summary=summary,
        figures=figures(folder, summary),
    )


def run_chapter(told: Told, points: int = POINTS, pricing: Pricing | None = None) -> Chapter:
    """Everything that is known of a run; a line of a chart has at most so many points."""
    summary, learners = told.summary, [told.learner]
    verdict = summary["verdict"]
    what = header(summary).plain.split(" · ")
    answer = [f"{headline(summary).plain}.", verdict.get("sentence") or ""]
    advice = [each for cause in verdict.get("findings", ()) for each in cause["advice"]]
    if advice:
        answer.append(f"First to try: {advice[0]['text']} ({gain_told(advice[0]['gain'])}).")
    return Chapter(
        name=told.name,
        title=" · ".join(what[:3]),
        about=" · ".join([told.name, *what[3:]]),
        question=f"How fast and how well did {what[0]} train with {what[1]}, and what held it "
        "back?",
        answer=[f"{each[0].upper()}{each[1:]}" for each in answer if each],
        sections=[
            *section("Verdict", *judged(verdict)),
            *section(
                "Learning",
                accuracy(learners),
                training_loss(learners, points),
                scored_loss(learners),
            ),
            *run_sections(told, points),
            *section("Money", _price(told, pricing)),
            *section("To repeat it", *repeat_run(told.about)),
        ],
        rows=[row(told)],
    )


def run_sections(told: Told, points: int) -> list[Section]:
    """What roles did and used, and what befell them."""
    summary, records = told.summary, told.records
    return [
        *section(
            "Speed",
            over_time(records.steps, points),
        ),
        *section("Roles", phases(spent_by(summary["roles"])), _roles(summary)),
        *section(
            "Resources",
            resources(records.resources, points),
            traffic(summary["roles"]),
            _hosts(summary),
        ),
        *section("Staleness", staleness(summary["roles"])),
        *section(
            "Faults and events",
            faults(summary["faults"], summary["seconds"]["total"]),
            _events(summary),
        ),
        *section("Published figures", *beside([told.summary])),
    ]


def run_charts(told: Told, points: int) -> list[Chart]:
    """Those of one run among many."""
    summary, records = told.summary, told.records
    made = [
        over_time(records.steps, points),
        phases(spent_by(summary["roles"])),
        resources(records.resources, points),
        traffic(summary["roles"]),
        staleness(summary["roles"]),
        faults(summary["faults"], summary["seconds"]["total"]),
    ]
    return [chart for chart in made if chart]


def row(told: Told, **more: object) -> dict[str, object]:
    """The run in a sheet."""
    spec = told.summary["spec"]
    fields = ("task", "data", "strategy", "workers", "servers", "transport", "batch", "codec")
    return {
        "cell": told.name,
        "repeat": None,
        "run": told.name,
        **{name: spec.get(name) for name in fields},
        **told.figures,
        "bottleneck": told.summary["verdict"].get("bottleneck"),
        "fault": "",
        **more,
    }


def _price(told: Told, pricing: Pricing | None) -> Grid | None:
    chart = pricing.runs([(told.summary, told.figures)]) if pricing else None
    if chart is None:
        return None
    columns = [column for column in chart.table if column.title != "verdict"]
    return Grid(
        caption=f"What it costs ({chart.figure['layout']['xaxis']['title']['text']})",
        columns=columns,
    )


def _roles(summary: Mapping[str, Any]) -> Grid | None:
    if not summary["roles"]:
        return None
    inside = inside_note(summary["roles"])
    return Grid(
        caption="What each role did and used, and where its time went",
        columns=role_columns(summary),
        note=inside.plain.replace(INSIDE, f"{INSIDE}:", 1) if inside else "",
    )


def _hosts(summary: Mapping[str, Any]) -> Grid | None:
    columns = host_columns(summary)
    if not columns:
        return None
    return Grid(caption="Hosts, while the run trained: everything on them", columns=columns)


def _events(summary: Mapping[str, Any]) -> Grid | None:
    events = summary["events"][:EVENTS]
    if not events:
        return None
    more = len(summary["events"]) - len(events)
    return Grid(
        caption="Events",
        columns=[
            Column(title="at", cells=[duration(event["time"]) for event in events]),
            Column(title="role", cells=[event["role"] for event in events], words=True),
            Column(title="what", cells=[event["kind"] for event in events], words=True),
            Column(title="in words", cells=[event["detail"] or "" for event in events], words=True),
        ],
        note=f"and {more:,} more" if more else "",
    )
