"""How a run's outcome is told."""

from __future__ import annotations

from pathlib import Path

import typer
from rich.text import Text

from paceline.api import Run
from paceline.cli.failures import INTERRUPTED
from paceline.cli.telling import show, show_json
from paceline.report.words import Summary


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
    from paceline.report.baseline import comparable_single
    from paceline.report.tables import comparison, report
    from paceline.store.folder import RunFolder

    show(report(summary))
    base = comparable_single(RunFolder(Path(summary["dir"])), root)
    if base:
        show("", f"Against the newest comparable run with one worker, {base['run']}:", "")
        show(comparison([base, summary], base))
    show("", Text(f"recorded in {summary['dir']}", style="dim"))
