"""`paceline launch`: a script with a training loop of its own, on several workers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from paceline import env
from paceline.cli.flags import Debug, Json, Out, Quiet, spec_flags
from paceline.cli.outcome import tell_run
from paceline.cli.telling import observer
from paceline.errors import RequestError
from paceline.spec import RunSpec
from paceline.tasks.catalog import BY_VALUE

STDOUT, STDERR = 1, 2  # where the script's own words go; with --json, standard output is taken

Script = Annotated[
    Path, typer.Argument(metavar="SCRIPT.py", help="a script that calls paceline.parallel()")
]
Arguments = Annotated[
    list[str] | None,
    typer.Argument(metavar="[ARGUMENTS …]", help="all that follows belongs to the script"),
]


@spec_flags(
    *("workers", "strategy", "servers", "transport"),
    *("device", "threads", "seed", "host", "port", "stall_after", "inject"),
    usual={"strategy": "allreduce; single for one worker"},
)
def launch(
    script: Script,
    arguments: Arguments = None,
    *,
    given: dict[str, Any],
    out: Out = None,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Run a script of your own on several workers.

    $ paceline launch -n 4 train.py --epochs 3
    $ paceline launch -n 2 --strategy ps-async --transport tcp train.py
    """
    usual = {"strategy": "single" if given.get("workers", 1) == 1 else "allreduce"}
    spec = RunSpec(task=f"{BY_VALUE}:{script.name}", **{**usual, **given})
    if not script.is_file():
        raise RequestError(f"there is no script '{script}'.")

    from paceline.api import launch_script

    root = out or env.runs_dir()
    done = launch_script(
        spec,
        script,
        arguments or [],
        out=root,
        observer=observer(quiet=quiet, draw=False),
        echo=STDERR if json else STDOUT,
    )
    tell_run(done, root, as_json=json, quiet=quiet)
