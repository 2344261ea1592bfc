"""One look for every table, and the layout that fits the width there is."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich import box
from rich.console import (
    Console,
    ConsoleOptions,
    Group,
    JustifyMethod,
    RenderableType,
    RenderResult,
)
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from paceline.report.words import NONE, Summary

ENDLESS = 10_000  # wider than any table: what measuring asks for


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A title, the unit below it, and a cell a row. Numbers stand right, words left."""

    title: str
    cells: Sequence[str]
    unit: str = ""
    words: bool = False
    style: str = ""

    @property
    def empty(self) -> bool:
        return all(cell in ("", NONE) for cell in self.cells)


def table(columns: Iterable[Column], *, groups: Sequence[str] = ()) -> Table:
    """The columns that say anything, side by side; a gap wherever `groups` changes between rows."""
    shown = [column for column in columns if column.words or not column.empty]
    grid = Table(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
        border_style="dim",
    )
    units = any(column.unit for column in shown)
    for column in shown:
        header = Text(column.title, style="dim" if column.style == "dim" else "bold")
        if units:
            header.append(f"\n{column.unit}", style="not bold dim")
        justify: JustifyMethod = "left" if column.words else "right"
        grid.add_column(header, justify=justify, style=column.style, no_wrap=True)
    for i, row in enumerate(zip(*(column.cells for column in shown), strict=True)):
        if groups and i and groups[i] != groups[i - 1]:
            grid.add_section()
        grid.add_row(*map(_cell, row))
    return grid


INSIDE = "*"  # marks a server without a process of its own


def named(role: Summary) -> str:
    name: str = role["role"]
    return name + INSIDE if role.get("inside") else name


def inside_note(roles: Sequence[Summary]) -> Text | None:
    if not any(role.get("inside") for role in roles):
        return None
    return Text(f"{INSIDE} inside the workers: its CPU and memory are counted there", style="dim")


def _cell(text: str) -> Text:
    return Text(text, style="dim" if text == NONE else "")


def stacked(*parts: RenderableType | None) -> RenderableType:
    """The parts there are, one below the other with a blank line between."""
    shown = [part for part in parts if part is not None]
    spaced = [each for part in shown for each in (Text(), part)]
    return Group(*spaced[1:])


class Fitting:
    """Shows the first of its renderables that fits the width there is, or else the last."""

    def __init__(self, *candidates: RenderableType) -> None:
        self.candidates = candidates

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        free = options.update(max_width=ENDLESS)
        for candidate in self.candidates:
            if Measurement.get(console, free, candidate).maximum <= options.max_width:
                break
        yield candidate


def render(renderable: RenderableType, width: int = 100) -> str:
    """Plain text of that width, for files and for `Run.table()`."""
    file = io.StringIO()
    console = Console(file=file, width=width, color_system=None, highlight=False, emoji=False)
    console.print(renderable)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines())
