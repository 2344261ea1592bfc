"""`paceline scale`: more workers and servers for a run that is under way, or fewer."""

from __future__ import annotations

from typing import Any

import typer

from paceline import env
from paceline.cli.flags import Debug, Out, Quiet, spec_flags
from paceline.cli.show import Name
from paceline.cli.telling import remark

AS_THEY_ARE = "as many as there are"


@spec_flags("workers", "servers", usual={"workers": AS_THEY_ARE, "servers": AS_THEY_ARE})
def scale(
    run: Name,
    *,
    given: dict[str, Any],
    out: Out = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Have a run that is under way go on with more workers or servers, or with fewer.

    $ paceline scale last --workers 4
    $ paceline scale ps-async --workers 1 --servers 2
    """
    from paceline import api

    done = api.scale(run, out=out or env.runs_dir(), told=None if quiet else remark, **given)
    if not quiet:
        typer.echo(" ".join(done))
