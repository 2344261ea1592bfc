"""Everybody's share of the next round's batch, where all who take part compute it for themselves.

From the same turnout all come to the same shares: even ones, or with a balance such as their speed
deserves. Whoever is let in learns what a sample cost each of them, and deals as the others do.
"""

from __future__ import annotations

from collections.abc import Sequence

from paceline.exchange.balance import Balance, Pace
from paceline.exchange.muster import Turnout
from paceline.server.shards import cut

Share = tuple[int, int]


class Dealing:
    """One worker's. `crew` is who was there at the start, `whole` how many samples a round's batch
    has, and `room` how many workers there may be."""

    def __init__(
        self, index: int, crew: Sequence[int], whole: int, balance: bool, room: int
    ) -> None:
        self._index = index
        self._everybody = range(room)
        self._whole = whole
        self._balance = Balance(whole, crew) if balance else None
        self._members = list(crew)
        self._pushes: list[tuple[int, float]] = []  # of the last round

    def after(self, turnout: Turnout) -> Share | None:
        """This worker's share after a round; None: as before, or none if it leaves."""
        changed = turnout.invited or turnout.leaving
        if self._balance is None and turnout.pushes is self._pushes and not changed:
            return None  # the same as in the round before, which a muster tells by the same list
        self._pushes = turnout.pushes
        members = turnout.members()
        if self._balance is None:
            if members == self._members:
                return None
            self._members = members
            return self._even() if self._index in members else None
        before = self._balance.shares.get(self._index)
        paces = {
            worker: Pace(int(weight), seconds)
            for (worker, weight), seconds in zip(turnout.pushes, turnout.seconds, strict=True)
        }
        self._balance.after(paces, members, turnout.invited)
        after = self._balance.shares.get(self._index)
        return after if after != before else None

    def costs(self) -> list[float]:
        """What whoever was let in needs to know: seconds a sample of each worker, 0 if unknown."""
        known = self._balance.known if self._balance is not None else {}
        return [known.get(worker, 0.0) for worker in self._everybody]

    def join(self, turnout: Turnout, costs: list[float]) -> Share:
        """This worker was let in in that round: its share of the next."""
        self._members = turnout.members()
        if self._balance is None:
            return self._even()
        known = {worker: cost for worker, cost in enumerate(costs) if cost}
        self._balance.join(known, self._members)
        return self._balance.shares[self._index]

    def _even(self) -> Share:
        shares = cut(self._whole, len(self._members))
        return shares[self._members.index(self._index)]
