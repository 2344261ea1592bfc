"""The command line, assembled: `paceline VERB …`."""

from __future__ import annotations

import os
import sys
from importlib import metadata
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from paceline.cli.demo import demo
from paceline.cli.failures import INTERRUPTED, UsageError, plainly, tell
from paceline.cli.launch import launch
from paceline.cli.run import run
from paceline.cli.runs import runs
from paceline.cli.show import show
from paceline.errors import UnknownName


class Verbs(TyperGroup):
    """The verbs; an unknown one is told as any unknown name is."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] not in self.commands:
            raise UnknownName("verb", args[0], self.commands)
        return super().resolve_command(ctx, args)


app = typer.Typer(
    cls=Verbs,
    add_completion=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def paceline(
    ctx: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="print the version and end")] = False,
) -> None:
    """Train a model on many workers, and see what that bought.

    $ paceline demo
    $ paceline run --strategy ps-async --workers 2
    $ paceline show last
    """
    if version:
        typer.echo(f"paceline {metadata.version('paceline')}")
    elif ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())


app.command()(plainly(demo))
app.command()(plainly(run))
app.command()(plainly(runs))
app.command()(plainly(show))
# What stands after the script is the script's own, flags included.
app.command(context_settings={"allow_interspersed_args": False})(plainly(launch))


def main(arguments: list[str] | None = None) -> int:
    """The whole command line; returns the exit code."""
    try:
        code = app(arguments, prog_name="paceline", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read us has enough; Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except (UsageError, UnknownName) as error:
        return tell(error)
    return code or 0
