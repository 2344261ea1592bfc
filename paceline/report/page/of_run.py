"""A run's chapter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from paceline.diagnose.records import Records, read
from paceline.report.beside import beside_columns
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
from paceline.report.grids import GRIDS
from paceline.report.hosts import host_columns
from paceline.report.layout import INSIDE, Column, inside_note
from paceline.report.page.document import Chapter, Grid, Section, Words, section
from paceline.report.page.judged import judged
from paceline.report.page.repeat import repeat_run
from paceline.report.published import published_softmax, softmax_source
from paceline.report.summary import summarise
from paceline.report.tables import header, headline, role_columns
from paceline.report.trials import figures
from paceline.report.words import duration, number, percent
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


def run_chapter(told: Told, points: int = POINTS) -> Chapter:
    """Everything that is known of a run; a line of a chart has at most so many points."""
    summary, learners = told.summary, [told.learner]
    verdict = summary["verdict"]
    what = header(summary).plain
    answer = [headline(summary).plain[:1].upper() + headline(summary).plain[1:] + "."]
    if verdict.get("sentence"):
        answer.append(verdict["sentence"])
    advice = [each for cause in verdict.get("findings", ()) for each in cause["advice"]]
    if advice:
        answer.append(f"First to try: {advice[0]['text']}.".replace("..", "."))
    return Chapter(
        name=told.name,
        title=what,
        question=f"How fast and how well did {what.partition(' · ')[0]} train with "
        f"{summary['spec']['strategy']}, and what held it back?",
        answer=answer,
        sections=[
            *section("Verdict", *judged(verdict)),
            *section(
                "Learning",
                accuracy(learners),
                training_loss(learners, points),
                scored_loss(learners),
            ),
            *run_sections(told, points),
            *section("To repeat it", *repeat_run(told.about)),
        ],
        rows=[row(told)],
    )


def run_sections(told: Told, points: int, *, folded: bool = False) -> list[Section]:
    """What roles did and used, and what befell them."""
    summary, records = told.summary, told.records
    return [
        *section(
            "Speed",
            over_time(records.steps, points),
            folded=folded,
        ),
        *section("Roles", phases(spent_by(summary["roles"])), _roles(summary), folded=folded),
        *section(
            "Resources",
            resources(records.resources, points),
            traffic(summary["roles"]),
            _hosts(summary),
            folded=folded,
        ),
        *section("Staleness", staleness(summary["roles"]), folded=folded),
        *section(
            "Faults and events",
            faults(summary["faults"], summary["seconds"]["total"]),
            _events(summary),
            folded=folded,
        ),
        *section("Published figures", *beside(told), folded=folded),
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


def beside(told: Told) -> list[Grid | Words]:
    """Figures that others published of the same, where there are any."""
    summary, spec = told.summary, told.summary["spec"]
    where = spec.get("data") or "mnist"
    found: list[Grid | Words] = []
    roles = {(p.strategy, p.role) for p in published_softmax()}
    ours = {(spec["strategy"], role["role"]) for role in summary["roles"]}
    if spec["task"] == "softmax" and where == "mnist" and ours & roles:
        found.append(
            Grid(
                caption="Each of our figures, and to its right the one published in 2019",
                columns=beside_columns([summary]),
                note=f"2019: {softmax_source()}",
            )
        )
    for grid in GRIDS.values():
        if all(
            (spec.get(k) or (where if k == "data" else None)) == v for k, v in grid.spec.items()
        ):
            same = [
                cell
                for cell in grid.cells()
                if all(spec.get(k) == v for k, v in cell.fields.items())
            ]
            for cell in same:
                seconds = [summary["seconds"]["train"], cell.seconds]
                right = [summary["quality"]["accuracy"], cell.accuracy]
                found.append(
                    Grid(
                        caption=f"{grid.title}: ours, and as published in {grid.year}",
                        columns=[
                            Column(title="", cells=["ours", str(grid.year)], words=True),
                            Column(title="accuracy", unit="%", cells=[percent(a) for a in right]),
                            Column(
                                title="training", unit="s", cells=[number(s, 1) for s in seconds]
                            ),
                        ],
                        note=f"{grid.year}: {grid.source}",
                    )
                )
    return found


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
