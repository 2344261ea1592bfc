"""`paceline serve`: runs and sweeps as they happen, in a browser."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from paceline import env
from paceline.cli.flags import Debug, Out
from paceline.errors import RequestError

Listen = Annotated[
    str,
    typer.Option(
        "--listen",
        metavar="ADDRESS",
        help="where; beyond this machine a token is needed, which is printed once",
    ),
]
Port = Annotated[
    int | None,
    typer.Option(
        "--port",
        metavar="PORT",
        min=0,
        max=65535,
        help="which; 0 for any (default: 8765, or the next free one)",
    ),
]
Token = Annotated[
    bool, typer.Option("--token", help="ask for a token on this machine, too: others may use it")
]
Open = Annotated[bool, typer.Option("--open", help="open the page in a browser")]


def serve(
    *,
    out: Out = None,
    listen: Listen = "127.0.0.1",
    port: Port = None,
    token: Token = False,
    open_: Open = False,
    debug: Debug = False,
) -> None:
    """Show runs and sweeps in a browser, as they happen. Ctrl-C ends it; runs go on.

    $ paceline serve --open
    $ paceline serve --out /data/runs --port 9000
    $ paceline serve --listen 0.0.0.0
    """
    from paceline.web.serve import listen as listening
    from paceline.web.serve import serve as serving

    root = out or env.runs_dir()
    if root.exists() and not root.is_dir():
        raise RequestError(f"'{root}' is a file; --out takes the folder that holds the runs.")
    found = listening(listen, port, token=token)

    def ready() -> None:
        typer.echo(f"runs in '{root}' are shown at {found.address}")
        typer.echo("Ctrl-C ends it.", err=True)
        sys.stdout.flush()  # whoever reads a pipe waits for the address
        if open_:
            typer.launch(found.address)

    serving(root, found, ready)
