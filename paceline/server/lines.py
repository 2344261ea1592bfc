"""Which connection speaks for a worker, since when it is gone, what is done to it on purpose."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from paceline.errors import WireError

if TYPE_CHECKING:
    from paceline.server.connection import Connection

STANDBY = -1  # in place of a worker's number


class Lines:
    """`lease` is how many seconds a worker without a line is waited for; 0: as long as it takes.
    `limits` are bytes a second, of workers whose lines are slowed on purpose."""

    def __init__(self, lease: float, limits: Mapping[int, float] = MappingProxyType({})) -> None:
        self._lease = lease
        self._limits = limits
        self._of: dict[int, Connection] = {}
        self._gone: dict[int, float] = {}  # since when each has none
        self._told: set[int] = set()  # those of which it was said
        self._cut: frozenset[int] = frozenset()
        self._mute: dict[int, float] = {}  # since when

    def claim(self, line: Connection, worker: int) -> None:
        """Only one connection pushes for a worker: it has one place for gradients."""
        holder = self._of.get(worker)
        if holder is None or holder.closed:
            self._of[worker] = line
            if worker in self._limits:
                line.limit(self._limits[worker])
        elif holder is not line:
            raise WireError(f"worker {worker} has another connection.")
        if worker in self._gone:
            del self._gone[worker]
            self._told.discard(worker)

    def admit(self, line: Connection, who: int) -> None:
        """Refuse whoever is cut off; who is mute is not heard on a new line either."""
        if who in self._cut or (who in self._mute and self._of.get(who) is not line):
            raise WireError("this connection is cut, on purpose.")

    def drop(self, worker: int) -> None:
        """This worker's life is over."""
        self._gone.pop(worker, None)
        if (line := self._of.pop(worker, None)) is not None:
            line.close()

    def harm(
        self, cut: Collection[int], mute: Collection[int], standby: Connection | None, now: float
    ) -> None:
        """From now on these are cut off or mute, and no others."""
        lines = self._of | ({STANDBY: standby} if standby is not None else {})
        self._cut = frozenset(cut)
        for who in self._cut & lines.keys():
            lines[who].close()
        self._mute = {who: self._mute.get(who, now) for who in mute}
        for who, line in lines.items():
            line.mute(who in self._mute)

    def missing(self, standby: Connection | None, now: float) -> list[int]:
        """Workers that have had no line for longer than their lease, each once.

        A line that is mute for so long is closed, as the system does with those that are silent.
        """
        if not self._lease:
            return []
        lines = self._of | ({STANDBY: standby} if standby is not None else {})
        for who, since in self._mute.items():
            if now - since >= self._lease and who in lines and not lines[who].closed:
                lines[who].close()
                if who != STANDBY:
                    self._gone[who] = since
        for worker, line in self._of.items():
            if line.closed:
                self._gone.setdefault(worker, now)
        found = [w for w, since in self._gone.items() if now - since >= self._lease]
        new = [worker for worker in found if worker not in self._told]
        self._told.update(new)
        return new
