"""What went to whom, where that follows from what was exchanged."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from paceline.transport.counts import Counts
from paceline.types import Traffic

FLOAT_BYTES = 4
GROUP = "group"  # in place of a peer, where it is the library's to choose whom to send to


def with_shards(shards: Sequence[tuple[int, int]], given: int) -> tuple[Traffic, ...]:
    """Over shared memory: of so many bytes given in whole gradients, each shard's part.

    With each gradient there is one push to every server, and one pull.
    """
    steps = given // (FLOAT_BYTES * max(1, shards[-1][1])) if shards else 0
    moved = [(stop - start) * FLOAT_BYTES * steps for start, stop in shards]
    return tuple(Traffic(f"server-{s}", m, m, steps, steps) for s, m in enumerate(moved))


class Ring:
    """What a worker gave to others, and took from them, in one group after another.

    gloo adds up around a ring: each gives to the one before it in the order of ranks, and takes
    from the one after it. NCCL decides for itself. How many messages that takes is theirs to know.
    """

    def __init__(self) -> None:
        self._with: defaultdict[str, Counts] = defaultdict(Counts)
        self._to = self._from = Counts()

    def form(self, members: Sequence[int], index: int, *, known: bool) -> None:
        """From now on among these workers; `known` says that they go around the ring."""
        before, after = GROUP, GROUP
        if known:
            rank, size = members.index(index), len(members)
            before = f"worker-{members[rank - 1]}"
            after = f"worker-{members[(rank + 1) % size]}"
        self._to, self._from = self._with[before], self._with[after]

    def add(self, moved: int) -> None:
        """So many bytes each way."""
        self._to.sent += moved
        self._from.received += moved

    @property
    def sent(self) -> int:
        return sum(counts.sent for counts in self._with.values())

    @property
    def received(self) -> int:
        return sum(counts.received for counts in self._with.values())

    def told(self) -> tuple[Traffic, ...]:
        moved = ((peer, c.sent, c.received) for peer, c in self._with.items())
        return tuple(Traffic(*of) for of in moved if of[1] or of[2])


def added(traffic: Iterable[Traffic]) -> tuple[Traffic, ...]:
    """One entry a peer."""
    found: dict[str, Traffic] = {}
    for more in traffic:
        so_far = found.get(more.peer)
        found[more.peer] = more if so_far is None else _sum(so_far, more)
    return tuple(found.values())


def _sum(one: Traffic, other: Traffic) -> Traffic:
    return Traffic(
        one.peer,
        one.sent + other.sent,
        one.received + other.received,
        _known(one.messages_sent, other.messages_sent),
        _known(one.messages_received, other.messages_received),
    )


def _known(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other
