"""What a server did, for the run's table."""

from __future__ import annotations

from dataclasses import dataclass, field

from paceline.measure.stopwatch import Stopwatch
from paceline.transport.counts import Counts, together
from paceline.types import SERVING, Traffic


@dataclass(slots=True)
class Tally:
    """`peers` counts what went to and came from each, by role. Those that never said who they are
    have no name; `strangers` have not yet. `watch` knows what it is at: one of SERVING."""

    dropped: int = 0
    peers: dict[str, Counts] = field(default_factory=dict)
    strangers: set[Counts] = field(default_factory=set)
    watch: Stopwatch = field(default_factory=lambda: Stopwatch(SERVING))

    def begin(self, watch: Stopwatch) -> None:
        """From nothing again, in another role."""
        self.dropped = 0
        self.peers.clear()
        self.watch = watch

    @property
    def phases(self) -> dict[str, float]:
        """Where its time went, as a worker's phases are called."""
        spent = self.watch.seconds
        wait, update = spent["gate"] + spent["idle"], spent["apply"]
        return {"exchange": sum(spent.values()) - wait - update, "wait": wait, "update": update}

    def of(self, peer: str) -> Counts:
        return self.peers.setdefault(peer, Counts())

    def stranger(self) -> Counts:
        """Of a new connection."""
        counts = Counts()
        self.strangers.add(counts)
        return counts

    def known(self, stranger: Counts, peer: str) -> Counts:
        """It is this peer's, and what it counted so far."""
        self.strangers.discard(stranger)
        counts = self.of(peer)
        counts.add(stranger)
        return counts

    @property
    def sent(self) -> int:
        return together((*self.peers.values(), *self.strangers)).sent

    @property
    def received(self) -> int:
        return together((*self.peers.values(), *self.strangers)).received

    def traffic(self) -> tuple[Traffic, ...]:
        peers = tuple(self.peers.items())  # others may get to know somebody meanwhile
        return tuple(counts.with_peer(peer) for peer, counts in peers if peer)
