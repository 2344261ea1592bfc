"""Ctrl-C and its kin: the first asks the run to stop, the second insists."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

from paceline.interrupts import interrupted

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopping:
    """A handler that only takes note, so that no signal tears a decision in half."""

    def __init__(self) -> None:
        self.asked = interrupted()  # before this was here to hear it
        self.insisted = False

    @contextlib.contextmanager
    def caught(self) -> Iterator[None]:
        """Catch the signals for a while; only a process's main thread can."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self._note) for number in SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.insisted = self.asked
        self.asked = True
