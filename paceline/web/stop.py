"""Stopping a run or a sweep from afar: as Ctrl-C does, to exactly the process that launched it."""

from __future__ import annotations

import os
import platform
import signal
from pathlib import Path

from paceline.errors import RequestError
from paceline.measure.process import still_runs
from paceline.store.folder import ROLES
from paceline.store.live import UNDER_WAY, live_fault
from paceline.store.sweeps import LIVE
from paceline.store.text import read_object


class Stops:
    """Remembers whom it has asked: a second interrupt would not ask but insist."""

    def __init__(self) -> None:
        self._asked: set[tuple[int, float]] = set()

    def ask(self, path: Path) -> str:
        """What was done, in a sentence; RequestError if nothing was."""
        name = path.name
        live = read_object(path / (LIVE if (path / LIVE).is_file() else ROLES))
        if fault := live_fault(live):
            raise RequestError(f"'{name}' cannot be stopped: {fault}.")
        if live["state"] not in UNDER_WAY:
            raise RequestError(f"'{name}' is over already: {live['state']}.")
        by = live["launcher"]
        if by["host"] != platform.node():
            raise RequestError(f"'{name}' runs on {by['host']}: stop it there, with Ctrl-C.")
        who = by["pid"], by["created"]
        if who in self._asked:
            return f"'{name}' was asked to stop already; it scores and saves before it ends."
        try:
            # What is sent goes to this process, even if another gets its number meanwhile.
            process = os.pidfd_open(who[0])
        except (OSError, OverflowError, ValueError):
            raise _gone(name) from None
        try:
            if not still_runs(*who):
                raise _gone(name)
            signal.pidfd_send_signal(process, signal.SIGINT)
        except ProcessLookupError:
            raise _gone(name) from None
        except PermissionError:
            raise RequestError(
                f"'{name}' belongs to another user of this machine, who can stop it."
            ) from None
        finally:
            os.close(process)
        self._asked.add(who)
        return f"Asked '{name}' to stop; it scores and saves before it ends."


def _gone(name: str) -> RequestError:
    return RequestError(f"'{name}' has no launcher any more: there is nothing to stop.")
