"""A sweep's tables, from the summary that `paceline sweep --json` prints and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from paceline.report.answer import aim
from paceline.report.layout import Column, Fitting, stacked, table
from paceline.report.words import NONE, Summary, many, number
from paceline.store.sweeps import SweepEntry


def sweep_report(summary: Summary) -> RenderableType:
    """Everything the terminal tells of a sweep."""
    return stacked(
        _header(summary),
        cells_table(summary),
        _notes(summary),
        _faults(summary),
        Text(summary["answer"], style="bold"),
        Text(f"recorded in {summary['dir']}", style="dim"),
    )


def cells_table(summary: Summary) -> RenderableType:
    """One row a cell, with the interval of each figure beside or below it."""
    name, runs = _cells_named(summary)
    wide, narrow = _figures(summary, _bounded), _figures(summary, _plain)
    return Fitting(
        table([name, runs, *wide.values()]),
        stacked(
            table([name, runs, wide["speed"], wide["gain"], wide["part"]]),
            table([name, wide["right"], wide["epoch"], wide["target"]]),
        ),
        table([name, runs, *narrow.values()]),
        table([name, narrow["speed"], narrow["gain"], narrow["target"]]),
    )


def cell_columns(summary: Summary) -> list[Column]:
    """Everything that is told of cells, with intervals, however wide."""
    return [*_cells_named(summary), *_figures(summary, _bounded).values()]


def _cells_named(summary: Summary) -> tuple[Column, Column]:
    cells = summary["cells"]
    return (
        Column(title="cell", cells=[c["cell"] for c in cells], words=True, style="cyan"),
        Column(title="runs", cells=[_runs(cell) for cell in cells]),
    )


def _figures(summary: Summary, told: Callable[..., str]) -> dict[str, Column]:
    def each(title: str, unit: str, read: Callable[[Summary], str]) -> Column:
        return Column(title=title, unit=unit, cells=[read(cell) for cell in summary["cells"]])

    return {
        "speed": each("samples/s", "", lambda c: told(_rate(c["throughput"]))),
        "gain": each("speedup", "x", lambda c: _gain(c, told)),
        "part": each("efficiency", "%", lambda c: _efficiency(summary, c, told)),
        "right": each("accuracy", "%", lambda c: told(c["quality"]["accuracy"], 2, times=100)),
        "epoch": each("epoch", "s", lambda c: told(c["seconds"]["epoch"], 2)),
        "target": each("to target", "s", lambda c: _to_target(c, told)),
    }


def sweeps_table(entries: Sequence[SweepEntry]) -> RenderableType:
    """One row a sweep; what is wrong with a damaged one stands below."""
    columns = [
        Column(title="sweep", cells=[e.name for e in entries], words=True, style="cyan"),
        Column(title="state", cells=[e.state for e in entries], words=True),
        Column(title="study", cells=[e.study or NONE for e in entries], words=True),
        Column(title="cells", cells=[number(e.cells) for e in entries]),
        Column(title="runs", cells=[_of(e) for e in entries]),
        Column(title="failed", cells=[number(e.failed) for e in entries]),
    ]
    damaged = [Text(e.why, style="yellow") for e in entries if e.why]
    return Group(table(columns), *damaged)


def _of(entry: SweepEntry) -> str:
    if entry.trials is None or entry.done is None:
        return NONE
    return f"{entry.done + (entry.failed or 0)}/{entry.trials}"


def _header(summary: Summary) -> Text:
    study = summary["study"]
    told = f" · {many(len(summary['cells']), 'cell')}, {many(study['repeats'], 'repeat')} each"
    if summary["status"] != "done":
        told += f" · {summary['status']}, {many(summary['trials']['left'], 'run')} to go"
    return Text.assemble((summary["question"] or study["name"], "bold"), told)


def _notes(summary: Summary) -> Text:
    return Text(" ".join(notes(summary)), style="dim")


def notes(summary: Summary) -> list[str]:
    """What one must know to read the table of cells."""
    target = summary["target"]
    told = ["Intervals are 95 %, over repeats; speedups block by block."]
    if target:
        why = "" if target["asked"] else ", the best that all that learned reached"
        told.append(f"Target: {aim(target)}{why}.")
    if summary["study"]["repeats"] < 2:
        told[0] = "One repeat: what varies from run to run is not known."
    deaths = sum(
        bool(trial["figures"].get("deaths")) for c in summary["cells"] for trial in c["trials"]
    )
    if deaths:
        told.append(f"In {many(deaths, 'run')} a role died and came back; its time counts.")
    return told


def _faults(summary: Summary) -> RenderableType | None:
    lines = failures(summary)
    return Group(*(Text(line, style="yellow") for line in lines)) if lines else None


def failures(summary: Summary) -> list[str]:
    """Runs that failed, and cells that could not be run."""
    lines = [
        f"{cell['cell']}, repeat {trial['repeat'] + 1}: {trial['fault']}"
        for cell in summary["cells"]
        for trial in cell["trials"]
        if trial["fault"]
    ]
    return lines + [
        f"{name}: skipped: {' '.join(faults)}" for name, faults in summary["skipped"].items()
    ]


def _rate(throughput: Mapping[str, Any]) -> dict[str, Any]:
    return {**throughput, "value": throughput["samples_per_second"]}


def _runs(cell: Summary) -> str:
    return f"{cell['repeats']}" + (f" ({cell['failed']} failed)" if cell["failed"] else "")


def _gain(cell: Summary, told: Callable[..., str]) -> str:
    if cell["gain"] is None:
        return "1" if cell["repeats"] else NONE
    return told(cell["gain"]["throughput"], 2)


def _efficiency(summary: Summary, cell: Summary, told: Callable[..., str]) -> str:
    """Only where the number of workers differs at all."""
    crews = {each["spec"]["workers"] for each in summary["cells"]}
    if len(crews) < 2 or cell["gain"] is None:
        return NONE
    return told(cell["gain"]["efficiency"], 0, times=100)


def _to_target(cell: Summary, told: Callable[..., str]) -> str:
    if cell["seconds"]["to_target"]["value"] is None and cell["repeats"]:
        return f"{cell['reached']} of {cell['repeats']} met it"
    return told(cell["seconds"]["to_target"], 2)


def _bounded(figure: Mapping[str, Any], digits: int = 0, *, times: float = 1) -> str:
    """`1.71 (1.65–1.77)`"""
    told = _plain(figure, digits, times=times)
    if figure["low"] is None or figure["high"] is None:
        return told
    low, high = (f"{figure[end] * times:,.{digits}f}" for end in ("low", "high"))
    return f"{told} ({low}–{high})"


def _plain(figure: Mapping[str, Any], digits: int = 0, *, times: float = 1) -> str:
    value = figure["value"]
    return NONE if value is None else number(value * times, digits)
