"""Interrupts that came before anybody was there to act on them."""

from __future__ import annotations

import signal
from types import FrameType

_noted: list[int] = []


def note_interrupts() -> None:
    """From now on they are remembered, besides being raised where they find the program.

    A library that is being imported may take one for a failure of its own, and go on.
    """
    signal.signal(signal.SIGINT, _note)


def interrupted() -> bool:
    """Whether there was one."""
    return bool(_noted)


def _note(number: int, frame: FrameType | None) -> None:
    _noted.append(number)
    raise KeyboardInterrupt
