"""`paceline run`: one run, from flags or a file, to its end."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from paceline import env
from paceline.cli.flags import Debug, Json, Out, Quiet, spec_flags
from paceline.cli.outcome import tell_run
from paceline.cli.telling import observer
from paceline.spec import RunSpec, read_toml

SpecFile = Annotated[
    Path | None,
    typer.Option(
        "--spec",
        metavar="FILE.toml",
        help="read the spec from this file; flags override it",
        rich_help_panel="What is trained",
    ),
]


@spec_flags(*RunSpec.model_fields)
def run(
    *,
    given: dict[str, Any],
    spec: SpecFile = None,
    out: Out = None,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Train a task and show what each role did and cost.

    $ paceline run --task softmax --data mnist
    $ paceline run --strategy ps-async --workers 2 --batch 200 --epochs 5 --json
    $ paceline run --spec mine.toml --lr 0.1
    """
    wanted = RunSpec(**{**(read_toml(spec) if spec else {}), **given})

    from paceline.api import execute

    root = out or env.runs_dir()
    done = execute(wanted, out=root, observer=observer(quiet=quiet))
    tell_run(done, root, as_json=json, quiet=quiet)
