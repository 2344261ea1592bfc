"""A report from folders."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from paceline import __version__
from paceline.report.charts.learning import accuracy, scored_loss, training_loss
from paceline.report.charts.thin import POINTS
from paceline.report.charts.throughput import Rate, side_by_side
from paceline.report.layout import Column
from paceline.report.page.document import Chapter, Document, Grid, section
from paceline.report.page.money import Pricing
from paceline.report.page.of_run import Told, run_chapter, told_of
from paceline.report.page.of_sweep import sweep_chapter
from paceline.report.words import between, number, percent
from paceline.store.folder import RunFolder
from paceline.store.lookup import kind_of
from paceline.store.sweeps import SweepFolder

SHARED = 40_000  # points of all runs' lines together, about
FEWEST = 60
LINES = 30  # of one run's charts, about

Progress = Callable[[str], None]


def build(
    paths: Sequence[Path],
    title: str | None = None,
    pricing: Pricing | None = None,
    progress: Progress = lambda what: None,
) -> Document:
    """A chapter for each; several runs have one before them all that holds them side by side."""
    chapters: list[Chapter] = []
    runs: list[Told] = []
    alone = sum(kind_of(path) != "sweep" for path in paths)
    points = min(POINTS, max(FEWEST, SHARED // (LINES * max(1, alone))))
    for n, path in enumerate(paths):
        name = f"{path.resolve().name} ({n + 1} of {len(paths)})"
        if kind_of(path) == "sweep":

            def cell(done: int, of: int, name: str = name) -> None:
                progress(f"{name}: cell {done + 1} of {of}")

            chapters.append(sweep_chapter(SweepFolder(path), pricing, cell))
        else:
            progress(name)
            runs.append(told := told_of(RunFolder.open(path)))
            chapters.append(run_chapter(told, points, pricing))
    if len(runs) > 1:
        chapters.insert(0, _together(runs, points, pricing))
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return Document(
        title=title or (chapters[0].title if len(chapters) == 1 else "Runs side by side"),
        made=f"Made with Paceline {__version__}, {now}",
        chapters=chapters,
    )


def _together(runs: Sequence[Told], points: int, pricing: Pricing | None) -> Chapter:
    rates = [
        Rate(
            name=told.name,
            strategy=told.summary["spec"]["strategy"],
            value=value,
            low=low,
            high=high,
        )
        for told in runs
        for value, low, high in [
            (told.summary["throughput"][k] for k in ("samples_per_second", "low", "high"))
        ]
        if value is not None
    ]
    learners = [told.learner for told in runs]
    chart = side_by_side(rates)
    priced = [(told.summary, told.figures) for told in runs]
    return Chapter(
        name="together",
        title="Side by side",
        about=f"{len(runs)} runs",
        question="Which of these runs was fastest, and which learned best?",
        answer=[
            chart.says if chart else "None of these runs has a rate yet.",
            "They were not interleaved, so whatever else the machine did is in the difference; "
            "a sweep would keep it out.",
        ],
        sections=[
            *section("Results", _table(runs), chart),
            *section(
                "Learning",
                accuracy(learners),
                training_loss(learners, points),
                scored_loss(learners),
            ),
            *section("Time and money", pricing.runs(priced) if pricing else None),
        ],
    )


def _table(runs: Sequence[Told]) -> Grid:
    told = [run.summary for run in runs]
    rates = [each["throughput"] for each in told]
    return Grid(
        caption="Runs",
        columns=[
            Column(title="run", cells=[run.name for run in runs], words=True),
            Column(title="strategy", cells=[t["spec"]["strategy"] for t in told], words=True),
            Column(title="workers", cells=[number(t["spec"]["workers"]) for t in told]),
            Column(title="samples/s", cells=[number(r["samples_per_second"]) for r in rates]),
            Column(title="95 % interval", cells=[between(r["low"], r["high"]) for r in rates]),
            Column(
                title="accuracy", unit="%", cells=[percent(t["quality"]["accuracy"]) for t in told]
            ),
            Column(
                title="training", unit="s", cells=[number(t["seconds"]["train"], 1) for t in told]
            ),
            Column(
                title="held back by",
                cells=[t["verdict"].get("bottleneck") or "" for t in told],
                words=True,
            ),
        ],
    )
