"""`paceline trace`: a run's timeline, for a viewer."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from paceline import env
from paceline.cli.flags import Debug, Json, Out
from paceline.cli.show import Name
from paceline.cli.telling import remark, show_json
from paceline.errors import RequestError

File = Annotated[
    Path,
    typer.Option("-o", "--output", metavar="FILE", help="where to; compressed if it ends in .gz"),
]
From = Annotated[float, typer.Option("--from", metavar="SECONDS", help="since the run began")]
To = Annotated[float | None, typer.Option("--to", metavar="SECONDS", help="since the run began")]


def trace(
    run: Name,
    output: File = Path("trace.json"),
    *,
    begin: From = 0.0,
    end: To = None,
    out: Out = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Write a run's timeline as a Chrome trace: open it at https://ui.perfetto.dev.

    Hosts are processes, roles are threads. On it are steps with their phases,
    what servers were at, events, CPU, memory and traffic.

    $ paceline trace last
    $ paceline trace ps-sync -o trace.json.gz --from 10 --to 12.5
    """
    from paceline.report.trace import Window, write_trace
    from paceline.store.folder import RunFolder

    last = math.inf if end is None else end
    if not 0 <= begin < last:  # nor is NaN
        raise RequestError(f"--from {begin:g} --to {last:g}: nothing lies between them.")
    if output.is_dir():
        raise RequestError(f"-o '{output}' is a folder; name a file in it.")
    if not output.parent.is_dir():
        raise RequestError(f"-o '{output}': there is no folder '{output.parent}'.")
    folder = RunFolder.find(out or env.runs_dir(), run)
    with Console(stderr=True).status("writing") as status:
        told = write_trace(
            folder, output, Window(begin, last), told=lambda s: status.update(f"writing: {s:.1f} s")
        )
    if json:
        show_json({"run": folder.name, "path": str(output.resolve()), **asdict(told)})
        return
    what = f"{told.events:,} events of {told.roles} roles, {told.begin:.1f} to {told.end:.1f} s"
    typer.echo(f"{output}: {what}; open it at https://ui.perfetto.dev")
    if told.left_out:
        remark(
            f"What came after {told.end:.1f} s was left out: no viewer likes more events than that."
            f" Ask for it with --from {told.end:.1f}."
        )
