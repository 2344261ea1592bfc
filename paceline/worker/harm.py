"""What a worker does to itself because the run's spec injects faults."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

from paceline.files import pretend_full
from paceline.transport.control import Control, Message

SIGNALS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}


class Harm:
    """Nothing, unless the supervisor says otherwise. `folder` is the run's."""

    def __init__(self, control: Control, folder: Path) -> None:
        self._control = control
        self._folder = folder
        self.own: list[dict[str, Any]] = []  # what it is to do to itself
        self._slow = 1.0
        for told in control.heard("harm"):
            self.hear(told)

    def hear(self, told: Message) -> None:
        """What the supervisor says: the last word holds."""
        self.own, self._slow = told["own"], told["slow"]
        pretend_full(self._folder, told["full"])

    def between(self, taken: int) -> None:
        """So many steps are taken: do what is due before the next."""
        for fault in [fault for fault in self.own if fault["step"] <= taken + 1]:
            self.own.remove(fault)
            # Told first: a killed worker's next life must not be told to do it again.
            self._control.send("injected", number=fault["number"])
            os.kill(os.getpid(), SIGNALS[fault["act"]])

    def drag(self, began: float) -> None:
        """Computing began then and has ended: idle for as long as a slow worker would still take.

        A worker that is f times as slow idles (f − 1) · c after c seconds of computing.
        """
        if self._slow > 1.0:
            time.sleep((self._slow - 1.0) * (time.monotonic() - began))
