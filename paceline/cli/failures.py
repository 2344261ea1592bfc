"""How a failure is told: one plain sentence a fault on standard error, and an exit code.

0 done · 1 the run failed · 2 the request was wrong · 130 interrupted
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from functools import wraps
from typing import Any

import typer
from rich.console import Console
from rich.text import Text

from paceline.errors import PacelineError, RoleDied, UnknownName

INTERRUPTED = 130

# typer carries a click of its own; this is the public way to its base of all usage errors.
(UsageError,) = typer.BadParameter.__bases__


def plainly(verb: Callable[..., None]) -> Callable[..., None]:
    """The verb, with its failures told in our words."""

    @wraps(verb)
    def told(**values: Any) -> None:
        try:
            verb(**values)
        except (typer.Exit, typer.Abort, BrokenPipeError, UsageError):
            raise
        except Exception as error:
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
    return error.exit_code if isinstance(error, PacelineError | UsageError) else 1


def _sentences(error: Exception) -> list[str]:
    if isinstance(error, UsageError):
        return [_usage(error)]
    if isinstance(error, PacelineError):
        return str(error).splitlines()
    if isinstance(error, OSError) and error.filename:
        return [f"'{error.filename}': {(error.strerror or str(error)).lower()}."]
    return [f"unexpected {type(error).__name__}: {error} (this is a bug; --debug shows where)."]


def _usage(error: Any) -> str:
    """A usage error of the argument parser, with the verb whose help has the answer."""
    verb = error.ctx.command_path if error.ctx else "paceline"
    if hasattr(error, "possibilities"):
        close = sorted(error.possibilities or ())
        meant = f": did you mean '{close[0]}'?" if close else "."
        return f"unknown flag '{error.option_name}'{meant} See '{verb} --help'."
    said = error.format_message().rstrip(".")
    return f"{said[0].lower()}{said[1:]}. See '{verb} --help'."
