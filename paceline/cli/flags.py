"""Flags. Those of a spec are made from RunSpec itself, so that there is one list of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from pathlib import Path
from types import MappingProxyType
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
    "What is trained": (
        "task",
        "data",
        "data_dir",
        "features",
        "batch",
        "accumulate",
        "epochs",
        "steps",
        "seed",
    ),
    "How it learns": (
        *("lr", "scale_lr", "warmup", "decay"),
        *("optimizer", "momentum", "weight_decay", "l1"),
    ),
    "Who trains it": (
        *("strategy", "workers", "servers", "transport"),
        *("device", "threads", "host", "port", "tls"),
    ),
    "How gradients become parameters": (
        *("codec", "dense", "bound", "backup", "balance", "damp_stale"),
        *("sync_every", "outer_lr", "outer_momentum"),
    ),
    "When it is scored": ("evaluate", "evaluator", "target_accuracy"),
    "What becomes of faults": (
        *("replicas", "max_restarts", "lease", "stall_after", "inject"),
        *("checkpoint_every", "keep_checkpoints"),
    ),
}

SHORT = {"workers": "-n"}
METAVARS = {"data_dir": "DIR", "host": "ADDRESS", "inject": "FAULT"}

NAMES: dict[str, Iterable[str]] = {
    "task": TASKS,
    "data": DATA,
    "strategy": STRATEGIES,
    "optimizer": RULES,
}


def spec_flags(
    *fields: str, usual: Mapping[str, object] = MappingProxyType({})
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Gives a verb a flag for each of these fields; its `given` holds those the user set.

    `usual` is what help tells of fields for which the verb has a default of its own.
    """

    def decorate(verb: Callable[..., None]) -> Callable[..., None]:
        @wraps(verb)
        def called(**values: Any) -> None:
            texts = {name: values.pop(name) for name in fields}
            given = {
                name: field_value(name, text) for name, text in texts.items() if text is not None
            }
            given = {name: value for name, value in given.items() if value != []}  # not given
            verb(given=given, **values)

        own = inspect.signature(verb, eval_str=True).parameters.values()
        parameters = [p for p in own if p.name != "given"]
        at = next((i for i, p in enumerate(parameters) if p.kind is p.KEYWORD_ONLY), None)
        parameters[at:at] = [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_option(name, usual)
            )
            for name in fields
        ]
        # typer reads both.
        called.__annotations__ = {p.name: p.annotation for p in parameters}
        vars(called)["__signature__"] = inspect.Signature(parameters)
        return called

    return decorate


def field_value(name: str, text: Any) -> Any:
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


def _option(name: str, usual: Mapping[str, object]) -> Any:
    kinds = _kinds(name)
    told: dict[str, Any] = {
        "help": _help(name, usual),
        "rich_help_panel": next((title for title, names in PANELS.items() if name in names), None),
    }
    if bool in kinds:
        return Annotated[bool | None, typer.Option(f"{flag(name)}/--no-{flag(name)[2:]}", **told)]
    metavar = "INT" if int in kinds else "NUMBER" if float in kinds else "NAME"
    spellings = [flag(name), SHORT[name]] if name in SHORT else [flag(name)]
    told["metavar"] = METAVARS.get(name, metavar)
    if get_origin(RunSpec.model_fields[name].annotation) is tuple:  # may be given again
        return Annotated[list[str] | None, typer.Option(*spellings, **told)]
    return Annotated[str | None, typer.Option(*spellings, **told)]


def _help(name: str, usual: Mapping[str, object]) -> str:
    """The field's own description, the names it knows, and what holds where it is not given."""
    field = RunSpec.model_fields[name]
    known = NAMES.get(name, ())
    if get_origin(field.annotation) is Literal:
        known = get_args(field.annotation)
    default = usual.get(name, "the task's own" if name in OPEN else field.default)
    notes = [", ".join(known)] if known else []
    if default is not None and default is not False and default != ():
        notes.append(f"default: {default}")
    return f"{field.description} ({'; '.join(notes)})" if notes else str(field.description)
