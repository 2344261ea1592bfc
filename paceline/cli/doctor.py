"""`paceline doctor`: what this machine is good for."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from paceline import env
from paceline.cli.codes import FAILED, INTERRUPTED
from paceline.cli.flags import Debug, Json, Out, spec_flags
from paceline.cli.telling import remark, show, show_json
from paceline.errors import SpecError
from paceline.spec import RunSpec

OTHER = "Another host"

Quick = Annotated[
    bool, typer.Option("--quick", help="take seconds instead of half a minute, and be less sure")
]
Peer = Annotated[
    str | None,
    typer.Option(
        "--peer",
        metavar="HOST:PORT",
        help="measure the way to another host, too, where doctor listens",
        rich_help_panel=OTHER,
    ),
]
Listen = Annotated[
    str | None,
    typer.Option(
        "--listen",
        metavar="[ADDRESS:]PORT",
        help="be that other host for ten minutes (address: 127.0.0.1 unless given)",
        rich_help_panel=OTHER,
    ),
]
SecretFile = Annotated[
    Path | None,
    typer.Option(
        "--secret-file",
        metavar="FILE",
        help="file with the secret that both ends know (or set PACELINE_SECRET)",
        rich_help_panel=OTHER,
    ),
]


@spec_flags("task", "data", "data_dir", "features", "batch", usual={"task": "lenet"})
def doctor(
    *,
    given: dict[str, Any],
    quick: Quick = False,
    peer: Peer = None,
    listen: Listen = None,
    secret_file: SecretFile = None,
    out: Out = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Find out what this machine is good for, what is wrong with it, and what to do about that.

    $ paceline doctor
    $ paceline doctor --task mlp --quick --json
    $ paceline doctor --peer 10.0.0.7:5151 --secret-file secret
    """
    from paceline.doctor.secrets import address_of, secret_for

    if listen is not None:
        _refuse(given, quick=quick, peer=peer, out=out, json=json)
        _listen(listen, secret_file)
        return
    spec = RunSpec(**{"task": "lenet", **given}).absolute()
    target = None if peer is None else ":".join(map(str, address_of("--peer", peer)))
    secret = "" if target is None else secret_for(secret_file)

    from paceline.doctor.asked import Asked
    from paceline.doctor.examine import examine
    from paceline.report.doctor import as_object, report

    asked = Asked(
        folder=str(out or env.runs_dir()),
        spec=spec.model_dump(),
        quick=quick,
        peer=target,
        secret=secret,
    )
    with Telling() as telling:
        facts = examine(asked, telling.measuring)
    if json:
        show_json(as_object(facts))
    else:
        show(report(facts))
    if not facts.complete:
        raise typer.Exit(INTERRUPTED)
    if target is not None and facts.peer is None:
        raise typer.Exit(FAILED)


def _refuse(given: dict[str, Any], **others: object) -> None:
    named = [*given, *(name for name, value in others.items() if value)]
    if named:
        raise SpecError(
            f"--{name.replace('_', '-')} does not go with --listen: leave one of them out."
            for name in named
        )


def _listen(where: str, secret_file: Path | None) -> None:
    """Wait for another doctor, and tell who came."""
    from paceline.doctor.listening import Listening

    listening = Listening(where, secret_file)
    port = listening.address.rpartition(":")[2]
    typer.echo(f"listening on {listening.address} for ten minutes; Ctrl-C ends it sooner.")
    if listening.secret is not None:
        typer.echo(f"secret, shown this once: {listening.secret}")
        typer.echo("On the other host set PACELINE_SECRET to it, or put it into a file, and type")
        typer.echo(f"  paceline doctor --peer HOST:{port}")
    sys.stdout.flush()  # whoever reads a pipe must not wait ten minutes for it
    listening.serve(remark)


class Telling:
    """What is being measured, on standard error: a bar on a terminal, a line each elsewhere."""

    def __init__(self) -> None:
        self._console = Console(stderr=True, highlight=False)
        self._bar: Progress | None = None

    def __enter__(self) -> Telling:
        if self._console.is_terminal:
            # Once a second: drawing takes time from the cores that are measured.
            self._bar = Progress(
                BarColumn(bar_width=24),
                TextColumn("{task.description}"),
                TimeElapsedColumn(),
                console=self._console,
                refresh_per_second=1,
                transient=True,
            )
            self._task = self._bar.add_task("", total=1.0)
            self._bar.start()
        return self

    def measuring(self, what: str, done: float) -> None:
        if self._bar is not None:
            told = f"measuring {what}"
            self._bar.update(self._task, description=told, completed=done, refresh=True)
        else:
            remark(f"measuring {what}")

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
