"""Flags. Those of a spec are made from RunSpec itself, so that there is one list of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import typer

from paceline.data.catalog import BUILT_IN as DATA
from paceline.exchange.catalog import STRATEGIES
from paceline.server.catalog import RULES
from paceline.spec import RunSpec
from paceline.spec.runspec import OPEN, flag
from paceline.tasks.catalog import BUILT_IN as TASKS

TELLING = "What is told"

Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="DIR",
        help="folder that holds the runs (default: $PACELINE_RUNS, or 'runs')",
        rich_help_panel=TELLING,
    ),
]
Json = Annotated[
    bool,
    typer.Option("--json", help="print JSON on standard output", rich_help_panel=TELLING),
]
Quiet = Annotated[
    bool,
    typer.Option("--quiet", help="tell nothing but errors", rich_help_panel=TELLING),
]
Debug = Annotated[
    bool,
    typer.Option("--debug", help="show where an error comes from", rich_help_panel=TELLING),
]

PANELS = {
    "What is trained": ("task", "data", "data_dir", "batch", "epochs", "steps", "seed"),
    "How it learns": ("lr", "optimizer", "momentum", "weight_decay"),
    "Who trains it": (
        *("strategy", "workers", "servers", "transport"),
        *("device", "threads", "host", "port"),
    ),
    "When it is scored": ("evaluate", "evaluator", "target_accuracy"),
}

NAMES: dict[str, Iterable[str]] = {
    "task": TASKS,
    "data": DATA,
    "strategy": STRATEGIES,
    "optimizer": RULES,
}


def spec_flags(*fields: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Gives a verb a flag for each of these fields; its `given` holds those the user set."""

    def decorate(verb: Callable[..., None]) -> Callable[..., None]:
        @wraps(verb)
        def called(**values: Any) -> None:
            texts = {name: values.pop(name) for name in fields}
            given = {name: _value(name, text) for name, text in texts.items() if text is not None}
            verb(given=given, **values)

        own = inspect.signature(verb, eval_str=True).parameters.values()
        parameters = [p for p in own if p.name != "given"]
        at = next((i for i, p in enumerate(parameters) if p.kind is p.KEYWORD_ONLY), None)
        parameters[at:at] = [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_option(name)
            )
            for name in fields
        ]
        # typer reads both.
        called.__annotations__ = {p.name: p.annotation for p in parameters}
        vars(called)["__signature__"] = inspect.Signature(parameters)
        return called

    return decorate


def _value(name: str, text: Any) -> Any:
    """The text as the number its field wants. What is none stays text: RunSpec tells all faults."""
    for kind in (int, float):
        if kind in _kinds(name):
            try:
                return kind(text)
            except ValueError:
                return text
    return text


def _kinds(name: str) -> tuple[Any, ...]:
    annotation = RunSpec.model_fields[name].annotation
    return (annotation,) if isinstance(annotation, type) else get_args(annotation)


def _option(name: str) -> Any:
    kinds = _kinds(name)
    panel = next((title for title, names in PANELS.items() if name in names), "More")
    told = {"help": _help(name), "rich_help_panel": panel, "show_default": False}
    if bool in kinds:
        return Annotated[bool | None, typer.Option(f"{flag(name)}/--no-{flag(name)[2:]}", **told)]
    metavar = "INT" if int in kinds else "NUMBER" if float in kinds else "NAME"
    return Annotated[str | None, typer.Option(flag(name), metavar=metavar, **told)]


def _help(name: str) -> str:
    """The field's own description, the names it knows, and what holds where it is not given."""
    field = RunSpec.model_fields[name]
    told = field.description or ""
    if name in NAMES:
        told += ": " + ", ".join(NAMES[name])
    elif get_origin(field.annotation) is Literal:
        told += ": " + ", ".join(get_args(field.annotation))
    default = "the task's own" if name in OPEN else field.default
    return told if default is None or default is False else f"{told} (default: {default})"
