"""Carries what workers ask of the book of leases, and what it says back to them.

A worker that is to leave gives back what it had not begun. So as long as one is on its way out,
nobody is told that nothing is left: it may get that.
"""

from __future__ import annotations

from paceline.launch.crew import Crew, Member
from paceline.launch.leases import LeaseBook


class Leasing:
    def __init__(self, crew: Crew) -> None:
        self._crew = crew
        self._book: LeaseBook | None = None
        self._waiting: list[Member] = []
        self.over = False  # some have been told that nothing is left

    def start(self, book: LeaseBook) -> None:
        self._book = book

    def resize(self, workers: int) -> None:
        """So many share what is left."""
        if self._book is not None:
            self._book.resize(workers)

    def stop(self) -> None:
        """Nobody gets any more."""
        self._book = None
        self._answer_waiting()

    def ask(self, member: Member, done: int) -> None:
        """A worker that has finished `done` batches in all wants more."""
        if self._book is not None:
            if member.leasing:
                self._book.confirm(member.index, done)
            else:
                self._book.again(member.index, done)
        member.leasing = True
        self._answer(member)

    def left(self, member: Member, done: int) -> None:
        """A worker has gone after so many batches."""
        if self._book is not None:
            self._book.give_back(member.index, done)
        self._answer_waiting()

    def turn(self) -> None:
        """Nobody waits for a worker that leaves after all, or not at all."""
        if self._waiting and not self._some_leave():
            self._answer_waiting()

    def _answer_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        for member in waiting:
            if not member.gone and not member.left:
                self._answer(member)

    def _answer(self, member: Member) -> None:
        lease = self._book.take(member.index) if self._book is not None else None
        if lease is None and self._book is not None and not member.leaving:
            if self._some_leave():
                self._waiting.append(member)
                return
            self.over = True
        epoch, start, stop = lease or (None, 0, 0)
        member.control.send("lease", epoch=epoch, start=start, stop=stop)

    def _some_leave(self) -> bool:
        return any(m.leaving and not m.reached("trained") for m in self._crew.workers())
