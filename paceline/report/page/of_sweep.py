"""A sweep's chapter."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from paceline.errors import StoreError
from paceline.report.charts.learning import accuracy, scored_loss, training_loss
from paceline.report.charts.phases import phases, spent_by
from paceline.report.charts.scaling import curves, efficiency, speedup
from paceline.report.charts.throughput import Rate, side_by_side
from paceline.report.layout import Column
from paceline.report.page.document import Chapter, Grid, Section, Words, section
from paceline.report.page.judged import judged_cells
from paceline.report.page.money import Pricing
from paceline.report.page.of_run import Told, run_charts, told_of
from paceline.report.page.published import beside
from paceline.report.page.repeat import repeat_sweep
from paceline.report.sweep_tables import cell_columns, failures, notes
from paceline.report.swept import summarise_sweep
from paceline.report.tables import header
from paceline.report.words import many, number, percent
from paceline.store.folder import RunFolder
from paceline.store.sweeps import SweepFolder

FIGURES = 8000  # points of all lines of all cells' own charts together, about
FEWEST = 40  # points of one of them
LINES = 40  # of one cell's own charts, about
DETAILED = 40  # cells that have charts of their own


def sweep_chapter(
    folder: SweepFolder,
    pricing: Pricing | None = None,
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> Chapter:
    """All that is known of a sweep; `progress` hears how many cells are read, of how many."""
    summary = summarise_sweep(folder)
    typical: dict[str, Told] = {}
    for n, cell in enumerate(summary["cells"]):
        progress(n, len(summary["cells"]))
        if told := _typical(folder, cell):
            typical[cell["cell"]] = told
    learners = [told.learner_named(cell) for cell, told in typical.items()]
    points = max(FEWEST, FIGURES // max(1, LINES * len(typical)))
    study = summary["study"]
    lines = curves(summary["cells"])
    return Chapter(
        name=folder.name,
        title=f"Study {study['name']}: {_tasks(summary)}",
        about=f"{folder.name} · {_cells(summary)}{_state(summary)}",
        question=summary["question"] or f"How do these {_cells(summary)} differ?",
        answer=[summary["answer"]],
        sections=[
            *section(
                "Results",
                Grid(
                    caption="Cells, with 95 % intervals in brackets",
                    columns=cell_columns(summary),
                    note=" ".join(notes(summary)),
                ),
                _failures(summary),
                _gone(summary, typical),
            ),
            *section(
                "Speed",
                side_by_side(_rates(summary)),
                speedup(lines),
                efficiency(lines),
            ),
            *section(
                "Learning",
                accuracy(learners),
                training_loss(learners, 8 * points),
                scored_loss(learners),
                Words(text="Each line is the cell's run of median speed.") if learners else None,
            ),
            *section("Time and money", pricing.sweep(summary) if pricing else None),
            *section(
                "Verdicts",
                judged_cells({cell: told.summary["verdict"] for cell, told in typical.items()}),
                phases(_spent(typical), "Where the workers' time went in each cell", "cell"),
            ),
            *section("Published figures", *beside([told.summary for told in typical.values()])),
            *_details(typical, points),
            *section("Runs", _runs(summary), folded=True),
            *section("To repeat it", *repeat_sweep(folder.about())),
        ],
        rows=[_row(cell, trial) for cell in summary["cells"] for trial in cell["trials"]],
    )


def _cells(summary: Mapping[str, Any]) -> str:
    repeats = summary["study"]["repeats"]
    return f"{many(len(summary['cells']), 'cell')}, {many(repeats, 'repeat')} each"


def _tasks(summary: Mapping[str, Any]) -> str:
    """What is trained, as its tables say it."""
    specs = [{"spec": cell["spec"]} for cell in summary["cells"]]
    return ", ".join(dict.fromkeys(header(spec).plain.partition(" · ")[0] for spec in specs))


def _state(summary: Mapping[str, Any]) -> str:
    if summary["status"] == "done":
        return ""
    return f" · {summary['status']}, {many(summary['trials']['left'], 'run')} to go"


def _typical(folder: SweepFolder, cell: Mapping[str, Any]) -> Told | None:
    """The run of median speed, if its folder is still there."""
    done = [t for t in cell["trials"] if not t["fault"] and t["run"]]
    done.sort(key=lambda trial: trial["figures"].get("samples_per_second") or 0.0)
    if not done:
        return None
    try:
        return told_of(RunFolder.open(folder.runs / done[(len(done) - 1) // 2]["run"]))
    except StoreError:
        return None  # its figures are in the sweep's own file


def _rates(summary: Mapping[str, Any]) -> list[Rate]:
    return [
        Rate(
            name=cell["cell"],
            strategy=cell["spec"]["strategy"],
            value=cell["throughput"]["samples_per_second"],
            low=cell["throughput"]["low"],
            high=cell["throughput"]["high"],
        )
        for cell in summary["cells"]
        if cell["throughput"]["samples_per_second"] is not None
    ]


def _spent(typical: Mapping[str, Told]) -> dict[str, dict[str, float]]:
    """By cell: seconds of all its workers together."""
    found = {}
    for cell, told in typical.items():
        sums: dict[str, float] = {}
        for role, own in spent_by(told.summary["roles"]).items():
            if role.startswith("worker-"):
                for name, seconds in own.items():
                    sums[name] = sums.get(name, 0.0) + seconds
        found[cell] = sums
    return found


def _details(typical: Mapping[str, Told], points: int) -> list[Section]:
    """A folded section a cell, as far as a page can hold them."""
    shown = list(typical.items())[:DETAILED]
    return [
        made
        for cell, told in shown
        for made in section(
            f"In detail: {cell}",
            Words(text=f"The run {told.name}. {told.summary['verdict'].get('sentence') or ''}"),
            *run_charts(told, points),
            folded=True,
        )
    ]


def _failures(summary: Mapping[str, Any]) -> Words | None:
    lines = failures(summary)
    return Words(text="What failed or could not be run:", items=lines) if lines else None


def _gone(summary: Mapping[str, Any], typical: Mapping[str, Told]) -> Words | None:
    done = [cell["cell"] for cell in summary["cells"] if cell["repeats"]]
    gone = [cell for cell in done if cell not in typical]
    if not gone:
        return None
    told = "Runs of these cells are gone or damaged; what the sweep itself kept of them is shown:"
    return Words(text=told, items=gone)


def _runs(summary: Mapping[str, Any]) -> Grid | None:
    rows = [(cell["cell"], trial) for cell in summary["cells"] for trial in cell["trials"]]
    if not rows:
        return None
    told = [trial["figures"] for _, trial in rows]
    return Grid(
        caption="Every run, in the order of cells",
        columns=[
            Column(title="run", cells=[trial["run"] or "" for _, trial in rows], words=True),
            Column(title="cell", cells=[cell for cell, _ in rows], words=True),
            Column(title="repeat", cells=[number(trial["repeat"] + 1) for _, trial in rows]),
            Column(title="samples/s", cells=[number(f.get("samples_per_second")) for f in told]),
            Column(title="accuracy", unit="%", cells=[percent(f.get("accuracy")) for f in told]),
            Column(
                title="epoch", unit="s", cells=[number(f.get("epoch_seconds"), 2) for f in told]
            ),
            Column(title="in all", unit="s", cells=[number(t["seconds"], 1) for _, t in rows]),
        ],
    )


def _row(cell: Mapping[str, Any], trial: Mapping[str, Any]) -> dict[str, object]:
    fields = ("task", "data", "strategy", "workers", "servers", "transport", "batch", "codec")
    return {
        "cell": cell["cell"],
        "repeat": trial["repeat"],
        "run": trial["run"],
        **{name: cell["spec"].get(name) for name in fields},
        **trial["figures"],
        "fault": trial["fault"],
    }
