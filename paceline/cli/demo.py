"""`paceline demo`: what distributing brings, on real digits, in a minute or two."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer
from rich.text import Text

from paceline import env
from paceline.cli.codes import INTERRUPTED
from paceline.cli.flags import Debug, Json, Out, spec_flags
from paceline.cli.telling import observer, remark, show, show_json
from paceline.report.beside import beside_published
from paceline.report.layout import stacked
from paceline.report.paid import what_paid
from paceline.report.published import softmax_source
from paceline.report.tables import comparison
from paceline.report.words import Summary
from paceline.spec import RunSpec

# The published runs, which stand beside ours.
PUBLISHED: dict[str, Any] = {
    "task": "softmax",
    "data": "mnist",
    "batch": 200,
    "lr": 0.5,
    "epochs": 50,
    "threads": 1,  # for a model this small one thread is faster than several, also for one worker
}
CREWS: tuple[dict[str, Any], ...] = (
    {"strategy": "single"},
    {"strategy": "ps-sync", "workers": 3},
    {"strategy": "ps-async", "workers": 3},
)


@spec_flags("epochs", usual=PUBLISHED)
def demo(
    *, given: dict[str, Any], out: Out = None, json: Json = False, debug: Debug = False
) -> None:
    """Train on real digits with one worker, three in step, and three at their own pace.

    $ paceline demo
    $ paceline demo --epochs 5 --json
    """
    specs = [RunSpec(**{**PUBLISHED, **given, **crew}) for crew in CREWS]

    from paceline.api import execute

    root = out or env.runs_dir()
    runs: list[Summary] = []
    for i, spec in enumerate(specs, start=1):
        remark(f"{i} of {len(specs)}: {spec.strategy}, {spec.kind.summary}")
        run = execute(spec, out=root, observer=observer(quiet=False))
        if run.status == "stopped":
            remark(f"stopped; what was done so far lies in {root}.")
            raise typer.Exit(INTERRUPTED)
        runs.append(run.summary)
    if json:
        show_json({"runs": runs, "sentence": what_paid(runs, base=runs[0])})
    else:
        remark("")
        _tell(runs, root)


def _tell(runs: Sequence[Summary], root: Path) -> None:
    show(
        stacked(
            Text("Softmax regression on MNIST: ours, and what was published in 2019", style="bold"),
            beside_published(runs),
            Text(f"2019: {softmax_source()}", style="dim"),
            Text("Against one worker", style="bold"),
            comparison(runs, base=runs[0]),
            Text(what_paid(runs, base=runs[0]), style="bold"),
            Text(f"recorded in {root}", style="dim"),
        )
    )
