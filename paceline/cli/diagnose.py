"""`paceline diagnose`: what limits a run, by which numbers, and what to change."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from paceline import env
from paceline.cli.flags import Debug, Json, Out
from paceline.cli.telling import remark, show, show_json
from paceline.errors import RequestError
from paceline.report.words import Summary

TRYING = "The advice, tried"

Name = Annotated[
    str, typer.Argument(metavar="[RUN]", help="'last', a run's folder, or a part of its name")
]
Try = Annotated[
    bool,
    typer.Option(
        "--try",
        help="run it again briefly, with the first advice and without, and tell the gain",
        rich_help_panel=TRYING,
    ),
]
Number = Annotated[
    int | None,
    typer.Option(
        "--advice", metavar="N", help="try this one instead of the first", rich_help_panel=TRYING
    ),
]
Turns = Annotated[
    int,
    typer.Option(metavar="N", help="how often each of both is run", rich_help_panel=TRYING),
]
Seconds = Annotated[
    float,
    typer.Option(metavar="S", help="about how long each run trains", rich_help_panel=TRYING),
]


def diagnose(
    run: Name = "last",
    *,
    try_: Try = False,
    advice: Number = None,
    turns: Turns = 3,
    seconds: Seconds = 3.0,
    out: Out = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Tell what limits a run, under way or ended, by which numbers, and what to change.

    $ paceline diagnose
    $ paceline diagnose ps-async --json
    $ paceline diagnose last --try
    """
    from paceline.report.diagnosis import as_object, diagnosis
    from paceline.report.summary import summarise
    from paceline.store.folder import RunFolder

    if turns < 1 or not 0.2 <= seconds <= 600:
        raise RequestError("--turns must be at least 1, and --seconds between 0.2 and 600.")
    if advice is not None and not try_:
        raise RequestError("--advice says which one to try: say --try, too.")
    root = out or env.runs_dir()
    folder = RunFolder.find(root, run)
    summary = summarise(folder)
    if not json:
        show(diagnosis(summary))
    tried = _try(folder.path, summary, advice, turns, seconds, json) if try_ else None
    if json:
        show_json(as_object(summary) | {"tried": tried})


def _try(
    path: Path, summary: Summary, advice: int | None, turns: int, seconds: float, json: bool
) -> dict[str, object]:
    from paceline.api import try_advice
    from paceline.diagnose.trial import as_object, choose
    from paceline.report.diagnosis import trial

    asked = choose(summary["verdict"], advice)
    remark(f"\ntrying: {asked.text}")
    tried = try_advice(str(path), advice=asked.number, turns=turns, seconds=seconds, told=remark)
    if not json:
        show(trial(tried))
    return as_object(tried)
