"""Gates: when a server applies pushed gradients, and whom it answers. Pure decisions, no I/O.

A parameter server is the same for every strategy; the gate is what differs.
"""

from __future__ import annotations

from paceline.errors import UnknownName
from paceline.server.gate import WAIT, Decision, Gate, Push


class All:
    """A round closes when every worker that still counts has pushed.

    Nobody reads between its push and its answer, so one copy of the parameters serves all.
    """

    places = 1

    def __init__(self, workers: int) -> None:
        self._counting = set(range(workers))
        self._pushed: dict[int, Push] = {}

    def place(self, worker: int) -> int:
        return 0

    def push(self, push: Push) -> Decision:
        self._pushed[push.worker] = push
        return self._close()

    def leave(self, worker: int) -> Decision:
        self._counting.discard(worker)
        return self._close()

    def _close(self) -> Decision:
        if not self._pushed or not self._counting <= self._pushed.keys():
            return WAIT
        # In the order of workers, so that the sum does not depend on who came first.
        pushes = tuple(self._pushed[w] for w in sorted(self._pushed))
        self._pushed = {}
        return Decision(pushes, tuple(p.worker for p in pushes))


class AtOnce:
    """Each gradient is applied as it comes, into the place its worker will read next."""

    def __init__(self, workers: int) -> None:
        self.places = workers

    def place(self, worker: int) -> int:
        return worker

    def push(self, push: Push) -> Decision:
        return Decision((push,), (push.worker,))

    def leave(self, worker: int) -> Decision:
        return WAIT


def make_gate(name: str, workers: int) -> Gate:
    kinds: dict[str, type[All] | type[AtOnce]] = {"all": All, "at-once": AtOnce}
    if name not in kinds:
        raise UnknownName("gate", name, kinds)
    return kinds[name](workers)
