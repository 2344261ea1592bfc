"""The worker role when a script of the user's drives the loop."""

from __future__ import annotations

import contextlib
import runpy
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paceline.errors import TaskError
from paceline.store.steps import StepWriter
from paceline.transport.control import Control
from paceline.transport.slate import WRITE, Slate
from paceline.worker.role import done, part
from paceline.worker.saving import save_parameters

if TYPE_CHECKING:
    from paceline.worker.parallel import OwnLoop


@dataclass(slots=True)
class Scene:
    """What `paceline.parallel` finds when it is called in a worker."""

    assignment: dict[str, Any]
    fds: dict[str, int]
    control: Control
    slate: Slate
    writer: StepWriter
    loop: OwnLoop | None = None


_scene: list[Scene] = []


def scene() -> Scene | None:
    return _scene[0] if _scene else None


def script(assignment: dict[str, Any], fds: dict[str, int], control: Control, slate: Slate) -> None:
    """Run the script as `__main__`, then part as every worker does."""
    path = Path(assignment["script"])
    folder = Path(assignment["folder"])
    sys.argv = [str(path), *assignment["arguments"]]
    sys.path.insert(0, str(path.parent))
    writer = StepWriter(folder / "steps" / f"{assignment['role']}.steps")
    here = Scene(assignment, fds, control, slate, writer)
    _scene.append(here)
    with contextlib.closing(writer):
        _run(path)
        loop = here.loop
        if loop is None:
            raise TaskError(
                f"'{path.name}' ended without calling paceline.parallel(model, optimizer)."
            )
        among = part(loop.exchange, loop.reporter, control, slate)
    slate.at(WRITE)
    if among.first:
        save_parameters(folder / "final.pt", loop.replica)
    done(loop.exchange, loop.reporter, control)


def _run(path: Path) -> None:
    from paceline.worker.parallel import Stopped

    try:
        runpy.run_path(str(path), run_name="__main__")
    except Stopped:
        pass
    except SystemExit as ended:
        if ended.code not in (None, 0):
            raise TaskError(f"'{path.name}' ended with {ended.code!r}.") from None
