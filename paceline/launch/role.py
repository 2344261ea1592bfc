"""What a role's process does first and last, whatever its role."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import traceback
from typing import Any, NoReturn

from paceline.errors import PacelineError
from paceline.launch.aligning import keep_aligned
from paceline.measure.clock import Clock
from paceline.measure.malloc import keep_large_blocks
from paceline.measure.stack import answer
from paceline.transport.control import Control
from paceline.transport.slate import BUILD, ENDING, Slate


class Ended(SystemExit):
    """The supervisor told this role to end now."""


def play(assignment: dict[str, Any], fds: dict[str, int]) -> int:
    """Be the role; the process's exit code."""
    control = Control(socket.socket(fileno=fds.pop("control")))
    slate = Slate(fds.pop("slate"))
    slate.at(BUILD)
    assert slate.fd is not None
    answer(slate.fd)
    for number in (signal.SIGTERM, signal.SIGHUP):  # the latter is the supervisor's word
        signal.signal(number, _end)
    try:
        _settle(assignment)
        keep_aligned(control, Clock(assignment["t0"]), assignment["clock"])
        _main(assignment["kind"])(assignment, fds, control, slate)
    except Ended:
        return 0
    except PacelineError as wrong:
        control.send("failed", error=type(wrong).__name__, message=str(wrong))
        print(f"{type(wrong).__name__}: {wrong}", file=sys.stderr)  # noqa: T201 - the role's log
        return 1
    except BaseException as wrong:  # noqa: BLE001 - anything a user's task may raise
        traceback.print_exc()
        control.send("failed", error=type(wrong).__name__, message=_where(wrong))
        return 1
    finally:
        slate.at(ENDING)
        control.close()
    return 0


def _main(kind: str) -> Any:
    match kind:
        case "server":
            from paceline.launch.server_role import server

            return server
        case "standby":
            from paceline.launch.server_role import standby

            return standby
        case "evaluator":
            from paceline.worker.evaluator import evaluator

            return evaluator
        case "script":
            from paceline.worker.script import script

            return script
        case _:
            from paceline.worker.role import worker

            return worker


def _settle(assignment: dict[str, Any]) -> None:
    """Take the threads, cores, folder and import path this role was given."""
    import torch

    os.chdir(assignment["cwd"])
    sys.path[:] = assignment["path"]
    if assignment["cores"] and hasattr(os, "sched_setaffinity"):
        with contextlib.suppress(OSError):  # a core taken away meanwhile: float instead
            os.sched_setaffinity(0, assignment["cores"])
    if assignment["nice"]:
        os.nice(assignment["nice"])
    torch.set_num_threads(assignment["threads"])
    keep_large_blocks()


def _where(wrong: BaseException) -> str:
    """The exception in a sentence, with the line it came from."""
    frames = traceback.extract_tb(wrong.__traceback__)
    said = str(wrong) or "no message"
    if not frames:
        return said
    return f"{said} ({frames[-1].filename}, line {frames[-1].lineno})"


def _end(*_: object) -> NoReturn:
    raise Ended(0)
