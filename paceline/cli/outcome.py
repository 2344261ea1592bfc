"""How a run's outcome is told."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.text import Text

from paceline.cli.codes import INTERRUPTED
from paceline.cli.telling import show, show_json
from paceline.report.baseline import comparable_single
from paceline.report.layout import stacked
from paceline.report.tables import comparison, report
from paceline.report.words import Summary
from paceline.store.folder import RunFolder

if TYPE_CHECKING:
    from paceline.api import Run


def tell_run(run: Run, root: Path, *, as_json: bool, quiet: bool) -> None:
    """A run that just ended: its object or its tables, and exit code 130 if it was interrupted."""
    if as_json:
        show_json(run.summary)
    elif not quiet:
        tell_summary(run.summary, root)
    if run.status == "stopped":
        raise typer.Exit(INTERRUPTED)


def tell_summary(summary: Summary, root: Path) -> None:
    """The run's tables, what it gained over one worker where that is known, and where it lies."""
    parts = [report(summary)]
    measured = summary["throughput"]["samples_per_second"]
    base = comparable_single(RunFolder(Path(summary["dir"])), root) if measured else None
    if base:
        parts.append(Text(f"Against {base['run']}, not measured at the same time:"))
        parts.append(comparison([base, summary], base))
    show(stacked(*parts, Text(f"recorded in {summary['dir']}", style="dim")))
