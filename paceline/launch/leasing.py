"""Carries what workers ask of the book of leases, and what it says back to them.

Each request wakes the supervisor, on a core that a worker is on: so a lease lasts for a while, by
the pace that its worker has shown.

A worker that is to leave gives back what it had not begun. So as long as one is on its way out,
nobody is told that nothing is left: it may get that.
"""

from __future__ import annotations

import time

from paceline.launch.crew import Crew, Member
from paceline.launch.leases import LeaseBook

LASTS = 0.1  # seconds, while there is much to do


class Leasing:
    def __init__(self, crew: Crew) -> None:
        self._crew = crew
        self.book: LeaseBook | None = None  # where workers lease their samples
        self._stopped = False
        self._waiting: list[Member] = []
        self._asked: dict[int, tuple[float, int]] = {}  # by worker: when last, and what it had done
        self._least: dict[int, int] = {}  # batches of a lease
        self.over = False  # some have been told that nothing is left

    def resize(self, workers: int) -> None:
        """So many share what is left."""
        if self.book is not None:
            self.book.resize(workers)

    def stop(self) -> None:
        """Nobody gets any more."""
        self._stopped = True
        self._answer_waiting()

    def ask(self, member: Member, done: int) -> None:
        """A worker that has finished `done` batches in all wants more."""
        if self.book is not None and not self._stopped:
            if member.leasing:
                self.book.confirm(member.index, done)
            else:
                self.book.again(member.index, done)
        self._pace(member, done)
        member.leasing = True
        self._answer(member)

    def _pace(self, member: Member, done: int) -> None:
        """See how many batches a worker takes while a lease is to last."""
        now = time.monotonic()
        when, had = self._asked.get(member.index, (now, done))
        if member.leasing and done > had and now > when:
            self._least[member.index] = int(LASTS * (done - had) / (now - when)) or 1
        self._asked[member.index] = now, done

    def left(self, member: Member, done: int) -> None:
        """A worker has gone after so many batches."""
        if self.book is not None:
            self.book.give_back(member.index, done)
        self._answer_waiting()

    def turn(self) -> None:
        """Nobody waits for a worker that leaves after all, or not at all."""
        if self._waiting and not self._some_leave():
            self._answer_waiting()

    def awaited(self, member: Member) -> list[Member]:
        """Those that this worker gets no samples before: one of them may leave some."""
        if member not in self._waiting:
            return []
        return [m for m in self._crew.workers() if m.leaving and not m.reached("trained")]

    def _answer_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        for member in waiting:
            if not member.gone and not member.left:
                self._answer(member)

    def _answer(self, member: Member) -> None:
        more, least = self.book is not None and not self._stopped, self._least.get(member.index, 1)
        lease = self.book.take(member.index, least) if self.book is not None and more else None
        if lease is None and more and not member.leaving:
            if self._some_leave():
                self._waiting.append(member)
                return
            self.over = True
        epoch, start, stop = lease or (None, 0, 0)
        member.control.send("lease", epoch=epoch, start=start, stop=stop)

    def _some_leave(self) -> bool:
        return any(m.leaving and not m.reached("trained") for m in self._crew.workers())
