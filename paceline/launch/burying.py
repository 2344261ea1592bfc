"""Workers that are down, where the others go in rounds over shared memory and would wait for them.

A dead worker is buried on the board as soon as it is known to be dead, and the others go on. Its
next life asks them to be let in; until it is up, it is buried again and again: somebody may just
have been about to let the last one in.
"""

from __future__ import annotations

from paceline.exchange.layout import READY, ROLL, roll
from paceline.exchange.muster import Muster
from paceline.exchange.quorum import Quorum
from paceline.exchange.seats import Seats
from paceline.launch.crew import Member
from paceline.launch.segments import Segments
from paceline.spec import RunSpec


class Burying:
    def __init__(self, segments: Segments) -> None:
        self._segments = segments
        self._places = 0  # of the start
        self._room = 0  # for so many workers, at most
        self._down: dict[int, RunSpec] = {}

    def begin(self, spec: RunSpec, crew: tuple[int, ...], room: int) -> None:
        """These are there at the start: nobody waits for those of the spec that are not."""
        self._places, self._room = max(spec.workers, crew[-1] + 1), room
        for worker in set(range(self._places)).difference(crew):
            if (found := self._roll(spec)) is not None:
                found.bury(worker)
            elif (seats := self._seats(spec)) is not None:
                seats.leave(worker)

    def lost(self, spec: RunSpec, member: Member) -> bool:
        """A worker is dead: whether anybody is left that it could come back to."""
        found = self._roll(spec)
        if found is None:
            return True
        self._down[member.index] = spec
        found.bury(member.index)
        return found.anybody()

    def seat(self, spec: RunSpec, worker: int) -> None:
        """A worker that was not there at the start may come from now on."""
        found = self._roll(spec)
        if isinstance(found, Muster):
            found.seat(worker)
        elif (seats := self._seats(spec)) is not None:
            seats.seat(worker)

    def turn(self) -> None:
        for worker, spec in self._down.items():
            if (found := self._roll(spec)) is not None:
                found.bury(worker)

    def back(self, member: Member) -> None:
        """Its next life is up, and will ask."""
        self._down.pop(member.index, None)

    def _roll(self, spec: RunSpec) -> Muster | Quorum | None:
        kind = roll(spec)
        if kind is None:
            return None
        if kind is Quorum:
            return Quorum(self._segments.board(), ROLL, self._places)
        return Muster(self._segments.board(), ROLL, self._places, self._room)

    def _seats(self, spec: RunSpec) -> Seats | None:
        if spec.kind.samples != "leases" or spec.transport != "shm":
            return None
        awaited = spec.strategy != "hogwild"
        return Seats(self._segments.board(), READY + 1, self._places, self._room, awaited)
