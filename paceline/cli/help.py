"""How help looks: what the verb does, examples, then its flags by subject."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from typing import Any

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from typer.core import TyperCommand, TyperGroup

from paceline.errors import UnknownName
from paceline.report.layout import stacked

WIDEST = 100  # longer lines are hard to read
NAMES = 26  # characters for a flag and what it takes


class Verb(TyperCommand):
    """One verb, and its help."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        arguments = [_spelled(param) for param in self.params if _is_argument(param)]
        usage = " ".join([ctx.command_path, "[FLAGS]", *arguments])
        formatter.write(_text(*_opening(self.help, usage), *_sections(self.params)))


class Verbs(TyperGroup):
    """All verbs; an unknown one is told as any unknown name is."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        told = [
            (name, (verb.help or "").partition("\n")[0]) for name, verb in self.commands.items()
        ]
        verbs = _section("Verbs", told, names=0)
        opening = _opening(self.help, f"{ctx.command_path} VERB [FLAGS]")
        closing = Text(f"'{ctx.command_path} VERB --help' tells the flags of a verb.")
        formatter.write(_text(*opening, verbs, *_sections(self.params), closing))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] not in self.commands:
            raise UnknownName("verb", args[0], self.commands)
        return super().resolve_command(ctx, args)


def _text(*parts: RenderableType) -> str:
    """The parts as the terminal takes them, in colour where it can."""
    console = Console(highlight=False, emoji=False)
    console.width = min(console.width, WIDEST)
    with console.capture() as captured:
        console.print(stacked(*parts))
    return "\n".join(line.rstrip() for line in captured.get().splitlines()) + "\n"


def _opening(docstring: str | None, usage: str) -> Iterator[RenderableType]:
    does, _, examples = inspect.cleandoc(docstring or "").partition("\n\n")
    yield Text(does.replace("\n", " "))
    yield Text.assemble("Usage: ", (usage, "bold"))
    yield Padding(Text(examples, style="cyan"), (0, 0, 0, 2), expand=False)


def _sections(params: Iterable[Any]) -> Iterator[RenderableType]:
    """Flags in the order in which they were declared, under the subject each belongs to."""
    subjects: dict[str, list[tuple[str, str]]] = {}
    for param in params:
        title = param.rich_help_panel or ("Arguments" if _is_argument(param) else "More")
        subjects.setdefault(title, []).append((_spelled(param), param.help))
    for title, rows in subjects.items():
        yield _section(title, rows, names=NAMES)


def _is_argument(param: Any) -> bool:
    return bool(param.param_type_name == "argument")


def _spelled(param: Any) -> str:
    """`-n, --workers INT`"""
    if _is_argument(param):
        return str(param.metavar)
    names = ", ".join(sorted([*param.opts, *param.secondary_opts], key=len))
    return names if param.is_flag else f"{names} {param.metavar}"


def _section(title: str, rows: Iterable[tuple[str, str]], *, names: int) -> RenderableType:
    grid = Table(
        title=Text(title, style="bold"),
        title_justify="left",
        box=None,
        show_header=False,
        padding=(0, 0, 0, 2),
    )
    grid.add_column(style="cyan", no_wrap=True, min_width=names)
    grid.add_column()
    for name, told in rows:
        grid.add_row(name, Text(told))
    return grid
