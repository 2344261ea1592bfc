"""Where things are told: results on standard output, everything else on standard error."""

from __future__ import annotations

from typing import Any

import typer
from rich.console import Console, RenderableType

from paceline.report.live import Live
from paceline.store.text import to_json
from paceline.types import Observer, Silent


def observer(*, quiet: bool, draw: bool = True) -> Observer:
    """Who watches a run for the person at the terminal."""
    return Silent() if quiet else Live(draw=draw)


def show(renderable: RenderableType) -> None:
    """For a person, on standard output."""
    Console(highlight=False, emoji=False).print(renderable)


def show_json(value: Any) -> None:
    """For a program, on standard output: one JSON value and nothing else."""
    typer.echo(to_json(value, indent=2), nl=False)


def remark(text: str) -> None:
    """For a person, on standard error."""
    typer.echo(text, err=True)
