"""Gates: when a server applies pushed gradients, and whom it answers. Pure decisions, no I/O.

A parameter server is the same for every strategy; the gate is what differs.
"""

from __future__ import annotations

from math import inf

from paceline.errors import UnknownName
from paceline.exchange.balance import Balance, Pace
from paceline.server.gate import WAIT, Decision, Gate, Push, Shares
from paceline.server.shards import cut


class All:
    """A round closes when every worker that still counts has pushed, or all but `backup` of them.

    What comes for a round that was closed is dropped. What comes for a later one is kept for it:
    another block had closed this one without that worker, so enough others are on their way here.

    When a round opens, its batch of `whole` samples is shared out among those who count: evenly, or
    with `balance` by their speed.
    """

    holds = True

    def __init__(
        self, workers: int, backup: int = 0, whole: int = 0, balance: bool = False
    ) -> None:
        self.steady = backup == 0  # else the answer to a late worker may still be on its way
        self.ahead = inf if backup else 1
        self._backup = backup
        self._enough = workers - backup
        self._whole = whole
        self._counting = set(range(workers))
        self._pushed: dict[int, Push] = {}
        self._round = 0
        self._balance = Balance(whole, self._counting) if balance else None
        self._share_out()

    def push(self, push: Push) -> Decision:
        if push.version < self._round:
            return Decision(drop=(push.worker,))
        self._pushed[push.worker] = push
        return self._close()

    def leave(self, worker: int) -> Decision:
        self._counting.discard(worker)
        return self._close()

    def resume(self, version: int, pushes: dict[int, int], shares: Shares) -> None:
        self._round, self._shares = version, shares
        if self._balance is not None:
            self._balance.shares = shares

    def join(self, worker: int) -> None:
        self._counting.add(worker)

    def missing(self) -> tuple[int, ...]:
        missing = self._counting - self._pushed.keys() if self._pushed else ()
        return tuple(sorted(missing))

    def share(self, worker: int) -> tuple[int, int]:
        return self._shares.get(worker, (0, 0))

    def _share_out(self, pushes: tuple[Push, ...] = ()) -> None:
        """The next round's batch; `pushes` closed the last one."""
        if self._balance is not None:
            paces = {p.worker: Pace(int(p.weight), p.seconds) for p in pushes}
            self._balance.after(paces, self._counting)
            self._shares = self._balance.shares
            return
        shares = cut(self._whole, max(1, len(self._counting)))
        self._shares = dict(zip(sorted(self._counting), shares, strict=False))

    def _close(self) -> Decision:
        missing = self._counting - self._pushed.keys()
        waiting = [w for w, push in self._pushed.items() if push.version == self._round]
        if not waiting or (missing and not self._enough_of(waiting)):
            return WAIT
        # In the order of workers, so that the sum does not depend on who came first.
        pushes = tuple(self._pushed.pop(w) for w in sorted(waiting))
        self._round += 1
        self._counting.difference_update(p.worker for p in pushes if p.last)
        self._share_out(pushes)
        keep = all(p.keep for p in pushes)
        return Decision(pushes, tuple(p.worker for p in pushes), keep=keep)

    def _enough_of(self, waiting: list[int]) -> bool:
        """Whether a round closes with these, though some who count are missing."""
        return self._backup > 0 and len(waiting) >= self._enough


class AtOnce:
    """Each gradient is applied as it comes."""

    holds = False
    steady = False
    ahead = 0

    def __init__(self, workers: int) -> None:
        pass

    def push(self, push: Push) -> Decision:
        return Decision((push,), (push.worker,))

    def leave(self, worker: int) -> Decision:
        return WAIT

    def resume(self, version: int, pushes: dict[int, int], shares: Shares) -> None:
        pass

    def join(self, worker: int) -> None:
        pass

    def missing(self) -> tuple[int, ...]:
        return ()

    def share(self, worker: int) -> tuple[int, int]:
        return 0, 0


class Bounded:
    """Each gradient is applied as it comes; whoever is too far ahead waits for its answer.

    A worker that has taken n rounds gets the parameters of the next when the slowest has taken
    n + 1 − bound, so that at no time one is more than `bound` rounds ahead of another. A push says
    which round it is of, so that all servers count alike; whoever comes back counts from its first
    push on, and begins it where the slowest is.
    """

    holds = False
    steady = False
    ahead = 0

    def __init__(self, workers: int, bound: int) -> None:
        self._bound = bound
        self._rounds = dict.fromkeys(range(workers), 0)  # of those that count
        self._gone: set[int] = set()
        self._held: set[int] = set()

    def push(self, push: Push) -> Decision:
        slowest = 0
        if push.worker in self._gone:  # the others went on without it: they do not go back for it
            self._gone.discard(push.worker)
            slowest = min(self._rounds.values(), default=0)
        self._rounds[push.worker] = max(push.round, slowest)
        self._held.add(push.worker)
        return Decision((push,), self._released())

    def leave(self, worker: int) -> Decision:
        self._rounds.pop(worker, None)
        self._gone.add(worker)
        self._held.discard(worker)
        return Decision(answer=self._released())

    def resume(self, version: int, pushes: dict[int, int], shares: Shares) -> None:
        self._rounds.clear()  # they say again which round they are in

    def join(self, worker: int) -> None:
        pass

    def missing(self) -> tuple[int, ...]:
        slowest = min(self._rounds.values(), default=0)
        return tuple(w for w, n in sorted(self._rounds.items()) if self._held and n == slowest)

    def share(self, worker: int) -> tuple[int, int]:
        return min(self._rounds.values(), default=0), 0

    def _released(self) -> tuple[int, ...]:
        most = min(self._rounds.values(), default=0) + self._bound - 1
        near = tuple(w for w in sorted(self._held) if self._rounds[w] <= most)
        self._held.difference_update(near)
        return near


def make_gate(
    name: str, workers: int, bound: int = 0, backup: int = 0, whole: int = 0, balance: bool = False
) -> Gate:
    match name:
        case "all":
            return All(workers, backup, whole, balance)
        case "at-once":
            return AtOnce(workers)
        case "bounded":
            return Bounded(workers, bound)
        case _:
            raise UnknownName("gate", name, ("all", "at-once", "bounded"))
