"""How a failure is told: one plain sentence a fault on standard error, and an exit code."""

from __future__ import annotations

import difflib
import sys
import traceback
from collections.abc import Callable
from functools import wraps
from typing import Any, cast

import typer
from rich.console import Console
from rich.text import Text

from paceline.cli.codes import FAILED, WRONG
from paceline.errors import PacelineError, RoleDied

# What typer raises for a wrong flag or argument; only this kind of it has a public name.
UsageError = cast(type[Exception], typer.BadParameter.__base__)


def plainly(verb: Callable[..., None]) -> Callable[..., None]:
    """The verb, with its failures told in our words."""

    @wraps(verb)
    def told(**values: Any) -> None:
        try:
            verb(**values)
        except (typer.Exit, typer.Abort, BrokenPipeError, UsageError):
            raise
        except Exception as error:  # noqa: BLE001 - the last resort tells whatever it is
            raise typer.Exit(tell(error, debug=values.get("debug", False))) from None

    return told


def tell(error: Exception, *, debug: bool = False) -> int:
    """Says what went wrong and returns the exit code it deserves."""
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    if debug:
        traceback.print_exception(error, file=sys.stderr)
    if isinstance(error, RoleDied):
        for line in error.log:
            console.print(Text(f"  {line}", style="dim"))
    for sentence in _sentences(error):
        console.print(Text.assemble(("paceline: ", "bold red"), sentence))
    if isinstance(error, PacelineError):
        return error.exit_code
    return WRONG if isinstance(error, UsageError) else FAILED


def _sentences(error: Exception) -> list[str]:
    if isinstance(error, UsageError):
        return [_usage(error)]
    if isinstance(error, PacelineError):
        return str(error).splitlines()
    if isinstance(error, OSError) and error.filename:
        return [f"'{error.filename}': {(error.strerror or str(error)).lower()}."]
    return [f"unexpected {type(error).__name__}: {error} (this is a bug; --debug shows where)."]


def _usage(error: Any) -> str:
    """What the argument parser says, and the verb whose help has the answer."""
    said = error.format_message().rstrip(".")
    see = f" See '{error.ctx.command_path} --help'." if error.ctx else ""
    if hasattr(error, "possibilities"):
        return f"unknown flag '{error.option_name}'{_meant(error)}{see}"
    return f"{said[0].lower()}{said[1:]}.{see}"


def _meant(error: Any) -> str:
    """Without the dashes, which make all flags look alike."""
    known = {name.lstrip("-"): name for param in error.ctx.command.params for name in param.opts}
    close = difflib.get_close_matches(error.option_name.lstrip("-"), known, n=1)
    return f": did you mean '{known[close[0]]}'?" if close else "."
