"""`paceline demo`: what distributing brings, on real digits, in a minute or two."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.text import Text

from paceline import env
from paceline.cli.failures import INTERRUPTED
from paceline.cli.flags import Debug, Json, Out
from paceline.cli.telling import observer, show, show_json, whisper
from paceline.spec import RunSpec

# The published runs: softmax regression on MNIST with this batch and learning rate.
PUBLISHED = {"task": "softmax", "data": "mnist", "batch": 200, "lr": 0.5}
CREWS: list[dict[str, Any]] = [
    {"strategy": "single"},
    {"strategy": "ps-sync", "workers": 3},
    {"strategy": "ps-async", "workers": 3},
]

Epochs = Annotated[int, typer.Option("--epochs", metavar="INT", help="passes over the digits")]


def demo(*, epochs: Epochs = 50, out: Out = None, json: Json = False, debug: Debug = False) -> None:
    """Train on real digits with one worker, then three in step, then three each at its own pace.

    $ paceline demo
    $ paceline demo --epochs 5
    """
    specs = [RunSpec(**PUBLISHED, **crew, epochs=epochs) for crew in CREWS]

    from paceline.api import execute

    runs = []
    for i, spec in enumerate(specs, start=1):
        whisper(f"{i} of {len(specs)}: {spec.strategy}, {spec.kind.summary}")
        run = execute(spec, out=out or env.runs_dir(), observer=observer(quiet=False), debug=debug)
        if run.status == "stopped":
            raise typer.Exit(INTERRUPTED)
        runs.append(run.summary)
    if json:
        show_json({"runs": runs, "sentence": what_paid(runs)})
    else:
        tell_demo(runs)
