"""What every verb tells, and where: results on standard output, the rest on standard error."""

from __future__ import annotations

import json
import math
from typing import Any

import typer
from rich.console import Console, RenderableType

from paceline.report.live import Live
from paceline.types import Observer, Silent


def observer(*, quiet: bool) -> Observer:
    return Silent() if quiet else Live()


def show(*renderables: RenderableType) -> None:
    """For a person, on standard output."""
    console = Console(highlight=False, emoji=False)
    for renderable in renderables:
        console.print(renderable)


def show_json(value: Any) -> None:
    """For a program, on standard output: one JSON value and nothing else."""
    typer.echo(json.dumps(_strict(value), indent=2, default=str))


def _strict(value: Any) -> Any:
    """The value without NaN and infinity, which JSON does not have and diverged runs do."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _strict(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_strict(item) for item in value]
    return value
