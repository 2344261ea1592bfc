"""Workers that are down, where the others go in rounds over shared memory and would wait for them.

A dead worker is buried on the board as soon as it is known to be dead, and the others go on. Its
next life asks them to be let in; until it is up, it is buried again and again: somebody may just
have been about to let the last one in.
"""

from __future__ import annotations

from paceline.exchange.layout import ROLL, roll
from paceline.exchange.muster import Muster
from paceline.exchange.quorum import Quorum
from paceline.launch.crew import Member
from paceline.launch.segments import Segments
from paceline.spec import RunSpec


class Burying:
    def __init__(self, segments: Segments) -> None:
        self._segments = segments
        self._down: dict[int, RunSpec] = {}

    def lost(self, spec: RunSpec, member: Member) -> bool:
        """A worker is dead: whether anybody is left that it could come back to."""
        found = self._roll(spec)
        if found is None:
            return True
        self._down[member.index] = spec
        found.bury(member.index)
        return found.anybody()

    def turn(self) -> None:
        for worker, spec in self._down.items():
            if (found := self._roll(spec)) is not None:
                found.bury(worker)

    def back(self, member: Member) -> None:
        """Its next life is up, and will ask."""
        self._down.pop(member.index, None)

    def _roll(self, spec: RunSpec) -> Muster | Quorum | None:
        kind = roll(spec)
        return kind(self._segments.board(), ROLL, spec.workers) if kind is not None else None
