"""A role on another clock finds out how far that is from the supervisor's, and goes on doing so.

    role ──clock: sent──► supervisor ──time: heard──► role ──aligned: offset──► supervisor

The role asks, since the supervisor answers at once while a role may be in the middle of a step.
Whoever has the supervisor's own clock asks nothing.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from paceline.errors import PeerLost
from paceline.measure.clock import Clock
from paceline.measure.offset import Offset, best, clock_id, offset
from paceline.transport.control import TIME, Control, Message

if TYPE_CHECKING:
    from paceline.launch.crew import Member

TIMES = 8  # exchanges, of which the quickest counts
EVERY = 60.0  # seconds between two estimates
PATIENCE = 10.0  # seconds for an answer


def align(control: Control, clock: Clock) -> None:
    """Find the offset and tell it."""
    found = []
    for _ in range(TIMES):
        sent = clock.now()
        control.send("clock")
        heard = control.wait(TIME, seconds=PATIENCE)["heard"]
        found.append(offset(sent, heard, clock.now()))
    control.send("aligned", offset=best(found))


def keep_aligned(control: Control, clock: Clock, supervisors: str | None) -> None:
    """Where the supervisor's clock is not this one: align now, and again in a thread."""
    mine = clock_id()
    if mine is not None and mine == supervisors:
        return
    align(control, clock)
    threading.Thread(
        target=_again, args=(control, clock), name="paceline-clock", daemon=True
    ).start()


def _again(control: Control, clock: Clock) -> None:
    rest = threading.Event()
    while not rest.wait(EVERY) and not control.ended:
        try:
            align(control, clock)
        except PeerLost:  # told by whoever else waits for the supervisor
            return


class Clocks:
    """The supervisor's side."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def hear(self, member: Member, message: Message) -> bool:
        """Whether this message was about clocks."""
        heard = self._clock.now()
        match message["kind"]:
            case "clock":
                member.control.send(TIME, heard=heard)
            case "aligned":
                member.offsets.append(Offset(*message["offset"]))
            case _:
                return False
        return True
