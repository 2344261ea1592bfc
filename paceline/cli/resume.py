"""`paceline resume`: go on with a run that did not get to its end."""

from __future__ import annotations

from typing import Any

from paceline import env
from paceline.cli.flags import Debug, Json, Out, Quiet, spec_flags
from paceline.cli.outcome import tell_run
from paceline.cli.show import Name
from paceline.cli.telling import observer


@spec_flags("epochs", "steps", usual={"epochs": "as before", "steps": "as before"})
def resume(
    run: Name,
    *,
    given: dict[str, Any],
    out: Out = None,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Go on with a run that was stopped or killed, from its last checkpoint.

    $ paceline resume last
    $ paceline resume lenet-single --epochs 12
    """
    from paceline import api

    root = out or env.runs_dir()
    done = api.resume(run, out=root, observer=observer(quiet=quiet), **given)
    tell_run(done, root, as_json=json, quiet=quiet)
