"""The book of leases: which ranges of an epoch are given out. Pure; the supervisor holds it."""

from __future__ import annotations

import sys
from collections import defaultdict
from typing import Any

from paceline.data.sampler import Lease


class LeaseBook:
    """Gives every sample of every epoch once.

    A lease is half of an even share of what is left of the epoch, in whole batches, or of as many
    as are asked for, but no more than half of an even share of all that is left: few requests while
    there is much to do, and few batches at the end, so that workers finish together.
    """

    def __init__(
        self, samples: int, batch: int, workers: int, epochs: int | None, batches: int | None
    ) -> None:
        self._samples = samples
        self._batch = batch
        self._workers = workers
        self._epochs = epochs
        self._batches = batches  # given instead of epochs: how many batches in all
        self._given = 0  # batches
        self._epoch = 0
        self._next = 0
        self._back: list[Lease] = []
        # By worker: what it holds, in order, of which the first may be begun; what it gets once
        # more; and how many batches it had finished before what it holds.
        self._held: dict[int, list[Lease]] = defaultdict(list)
        self._again: dict[int, list[Lease]] = defaultdict(list)
        self._done: dict[int, int] = defaultdict(int)
        self._remembers = False

    def resize(self, workers: int) -> None:
        """So many share what is left."""
        self._workers = max(1, workers)

    def take(self, worker: int, least: int = 1) -> Lease | None:
        """The next range for this worker, of at least so many batches while there is much to do;
        None when nothing is left."""
        kept = self._again[worker] or self._back
        lease = kept.pop(0) if kept else self._cut(least)
        if lease is not None:
            self._held[worker].append(lease)
        return lease

    def confirm(self, worker: int, done: int) -> None:
        """The worker has finished `done` batches in all."""
        if not self._remembers:
            self._strike(worker, done)

    def again(self, worker: int, done: int) -> None:
        """The worker begins anew after `done` batches: it gets what it held and had not finished.

        It and no other, so that a batch of which some servers have the gradient keeps its name.
        """
        self._again[worker] = self._unfinished(worker, done) + self._again[worker]

    def give_back(self, worker: int, done: int) -> None:
        """The worker does not come back: what it had not finished is anybody's."""
        self._back += self._unfinished(worker, done) + self._again.pop(worker, [])

    # For a checkpoint, whose parts are of moments between its begin and its end: the book has to
    # find, from any number of batches that a worker had finished in between, what is left of them.

    def remember(self) -> None:
        """Strike out nothing that is finished from now on."""
        self._remembers = True

    def forget(self) -> None:
        """What is finished is of no interest again."""
        self._remembers = False

    def kept(self) -> dict[str, Any]:
        """All of it, as plain JSON values."""
        return {
            "given": self._given,
            "epoch": self._epoch,
            "next": self._next,
            "back": [list(lease) for lease in self._back],
            "workers": {
                str(worker): {
                    "done": self._done[worker],
                    "held": [list(lease) for lease in self._held[worker]],
                    "again": [list(lease) for lease in self._again[worker]],
                }
                for worker in sorted({*self._held, *self._again, *self._done})
            },
        }

    def restore(self, kept: dict[str, Any]) -> None:
        """Be as when this was kept; then each worker begins anew, `again`."""
        self._given, self._epoch, self._next = kept["given"], kept["epoch"], kept["next"]
        self._back = _leases(kept["back"])
        for worker, of in ((int(number), of) for number, of in kept["workers"].items()):
            self._done[worker] = of["done"]
            self._held[worker] = _leases(of["held"])
            self._again[worker] = _leases(of["again"])

    def _strike(self, worker: int, done: int) -> None:
        held = self._held[worker]
        while held and self._done[worker] + self._count(held[0]) <= done:
            self._done[worker] += self._count(held.pop(0))

    def _unfinished(self, worker: int, done: int) -> list[Lease]:
        self._strike(worker, done)
        held = self._held.pop(worker, [])
        begun = done - self._done[worker]
        self._done[worker] = done
        if held and begun:
            first = held[0]
            held[0] = first._replace(start=first.start + begun * self._batch)
        return held

    def _count(self, lease: Lease) -> int:
        """Its batches."""
        return -(-(lease.stop - lease.start) // self._batch)

    def _cut(self, least: int) -> Lease | None:
        if self._next >= self._samples:
            self._epoch, self._next = self._epoch + 1, 0
        here = -(-(self._samples - self._next) // self._batch)
        left = self._left(here)
        if left <= 0:
            return None
        here, parts = min(here, left), 2 * self._workers
        count = min(here, max(here // parts, min(least, left // parts), 1))
        self._given += count
        start = self._next
        self._next = min(start + count * self._batch, self._samples)
        return Lease(self._epoch, start, self._next)

    def _left(self, here: int) -> int:
        """Batches of all epochs that are to come, with those `here` in this one."""
        if self._batches is not None:
            return self._batches - self._given
        if self._epochs is None:
            return sys.maxsize
        ahead = self._epochs - self._epoch - 1
        return here + ahead * -(-self._samples // self._batch) if ahead >= 0 else 0


def _leases(values: list[list[int]]) -> list[Lease]:
    return [Lease(epoch, start, stop) for epoch, start, stop in values]
