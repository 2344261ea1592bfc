"""The command line, assembled: `paceline VERB …`."""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper
from typing import Annotated

import typer

from paceline import __version__
from paceline.cli.codes import FAILED, INTERRUPTED
from paceline.cli.compare import compare
from paceline.cli.convert import convert
from paceline.cli.cost import cost
from paceline.cli.demo import demo
from paceline.cli.diagnose import diagnose
from paceline.cli.doctor import doctor
from paceline.cli.failures import UsageError, plainly, tell
from paceline.cli.help import Verb, Verbs
from paceline.cli.launch import launch
from paceline.cli.report import report
from paceline.cli.reproduce import reproduce
from paceline.cli.resume import resume
from paceline.cli.run import run
from paceline.cli.runs import runs
from paceline.cli.scale import scale
from paceline.cli.serve import serve
from paceline.cli.show import show
from paceline.cli.sweep import sweep
from paceline.cli.trace import trace
from paceline.errors import UnknownName

app = typer.Typer(
    cls=Verbs,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def paceline(
    ctx: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="tell the version")] = False,
) -> None:
    """Train a model on many workers, and see what that bought.

    $ paceline demo
    $ paceline run --strategy ps-async --workers 2
    $ paceline show last
    """
    if version:
        typer.echo(f"paceline {__version__}")
    elif ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())


VERBS = (
    demo,
    run,
    sweep,
    resume,
    scale,
    runs,
    serve,
    show,
    diagnose,
    trace,
    compare,
    cost,
    report,
    reproduce,
    convert,
    doctor,
)
for verb in VERBS:
    app.command(cls=Verb)(plainly(verb))
# What stands after the script is the script's own, flags included.
app.command(cls=Verb, context_settings={"allow_interspersed_args": False})(plainly(launch))


def main(arguments: list[str] | None = None) -> int:
    """The whole command line; returns the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without '–' still gets its tables
    try:
        code = app(arguments, prog_name="paceline", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read us has enough; Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except (UsageError, UnknownName) as error:
        return tell(error)
    return code or 0
