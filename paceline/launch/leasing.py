"""Carries what workers ask of the book of leases, and what it says back to them."""

from __future__ import annotations

from paceline.launch.crew import Member
from paceline.launch.leases import LeaseBook


class Leasing:
    def __init__(self) -> None:
        self.book: LeaseBook | None = None  # where workers lease their samples
        self._over = False

    def stop(self) -> None:
        """Nobody gets any more."""
        self._over = True

    def ask(self, member: Member, done: int) -> None:
        """A worker that has finished `done` batches in all wants more."""
        lease = None
        if self.book is not None and not self._over:
            if member.leasing:
                self.book.confirm(member.index, done)
            else:
                self.book.again(member.index, done)
            lease = self.book.take(member.index)
        member.leasing = True
        epoch, start, stop = lease or (None, 0, 0)
        member.control.send("lease", epoch=epoch, start=start, stop=stop)
