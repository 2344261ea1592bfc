"""Who forms the workers' process group, decided from what they have said. Pure: no messages here.

    a member loses a peer ─► parks ─► once all have, or are gone ─► plan: those that are left
    a worker comes (back) ─► parks ─► members are called ─► they park after a round ─► plan: all
    a worker is to leave  ─► members are called ─► they park after a round ─► plan: all but that one

Members are called once one of them is gone, or has lost another, too: most find out by themselves,
but not those at rest, nor those who wait for the dead one to form a group.
A group cannot be repaired, so each plan is a new generation of it. Whoever has taken its last step
stays a member: it may be the only one that has the parameters.
"""

from __future__ import annotations

from collections.abc import Iterable

from paceline.data.sampler import evenly
from paceline.types import NOTHING, Parked, Plan


class Generations:
    """`crew` is who forms the first, `whole` how many samples a round has."""

    def __init__(self, crew: Iterable[int], whole: int) -> None:
        self._whole = whole
        self.current = 0
        self._members = set(crew)
        self._parked: dict[int, Parked] = {}  # members that have left this generation
        self._joining: dict[int, Parked] = {}  # workers that were in none yet
        self._called: set[int] = set()  # members that were asked to leave this generation
        self.broken = False  # whether a member of this generation is gone, or has lost another
        self._leaving: set[int] = set()  # members that are to be in no other

    def parked(self, worker: int, said: Parked) -> None:
        """A worker waits for a plan."""
        if worker not in self._members:
            self._joining[worker] = said
        elif said.generation == self.current:
            self._parked[worker] = said
            if said.broken:
                self._break()

    def leave(self, worker: int) -> None:
        """A member is to go, once all are between two rounds."""
        self._leaving.add(worker)

    def gone(self, worker: int) -> None:
        """A worker's life is over."""
        if worker in self._members:
            self._break()
        for some in (self._members, self._called, self._leaving):
            some.discard(worker)
        for those in (self._parked, self._joining):
            those.pop(worker, None)

    def _break(self) -> None:
        """Members that were called to leave after a round cannot take another, and are told so."""
        if not self.broken:
            self.broken, self._called = True, set()

    @property
    def members(self) -> frozenset[int]:
        """Of this generation, as far as they live."""
        return frozenset(self._members)

    @property
    def lost(self) -> bool:
        """Whether nobody is left who has the parameters, while somebody waits for them."""
        if not self._members:
            return bool(self._joining)
        there = self._parked.values()
        return self._all_parked and all(said.version == NOTHING for said in there)

    @property
    def _all_parked(self) -> bool:
        return bool(self._parked) and self._parked.keys() == self._members

    def calls(self) -> list[int]:
        """Members to be asked to leave this generation: once, and once more when it is broken."""
        going = self._leaving & self._members
        if not (self._joining or self.broken or (going and going != self._members)):
            return []
        new = self._members - self._called - self._parked.keys()
        self._called |= new
        return sorted(new)

    def plan(self) -> Plan | None:
        """The next generation, if it is time for it."""
        if not self._all_parked or self.lost:
            return None
        there = self._parked
        between = all(said.left for said in there.values())
        if between:  # nobody has begun a round that the joining would have to be in
            there = there | self._joining
            self._joining = {}
            there = self._staying(there)
        source = min(there, key=lambda worker: (-there[worker].version, worker))
        members = tuple(sorted(there))
        self.current += 1
        self._members, self._parked = set(members), {}
        self._called, self.broken = set(), False
        self._leaving &= self._members
        return Plan(
            generation=self.current,
            members=members,
            source=source,
            version=there[source].version,
            shares=tuple(evenly(self._whole, len(members))),
            between=between,
            over=any(said.over for said in there.values()),
        )

    def _staying(self, there: dict[int, Parked]) -> dict[int, Parked]:
        """Without those that are to leave, unless they alone have the parameters."""
        going = self._leaving & self._parked.keys()  # not those who have yet to come
        staying = {worker: said for worker, said in there.items() if worker not in going}
        some = any(said.version != NOTHING for said in staying.values())
        return staying if some else there
