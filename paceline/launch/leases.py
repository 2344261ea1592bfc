"""The book of leases: which ranges of an epoch are given out. Pure; the supervisor holds it."""

from __future__ import annotations

from paceline.data.sampler import Lease


class LeaseBook:
    """Gives every sample of every epoch once.

    A lease is half of an even share of what is left of the epoch, in whole batches: few requests
    while there is much to do, single batches at the end, so that workers finish together.
    """

    def __init__(
        self, samples: int, batch: int, workers: int, epochs: int | None, batches: int | None
    ) -> None:
        self._samples = samples
        self._batch = batch
        self._workers = workers
        self._epochs = epochs
        self._batches = batches  # given instead of epochs: how many batches in all
        self._epoch = 0
        self._next = 0
        self._back: list[Lease] = []
        self._held: dict[int, list[Lease]] = {}

    def take(self, worker: int) -> Lease | None:
        """The next range for this worker, or None when nothing is left."""
        lease = self._back.pop(0) if self._back else self._cut()
        if lease is not None:
            self._held.setdefault(worker, []).append(lease)
        return lease

    def confirm(self, worker: int) -> None:
        """The worker's oldest lease is done."""
        if self._held.get(worker):
            self._held[worker].pop(0)

    def give_back(self, worker: int) -> None:
        """What the worker held and had not confirmed is free again."""
        self._back += self._held.pop(worker, [])

    def _cut(self) -> Lease | None:
        if self._next >= self._samples:
            self._epoch, self._next = self._epoch + 1, 0
        if self._epochs is not None and self._epoch >= self._epochs:
            return None
        left = -(-(self._samples - self._next) // self._batch)
        if self._batches is not None:
            left = min(left, self._batches)
            if left == 0:
                return None
        count = max(1, left // (2 * self._workers))
        if self._batches is not None:
            self._batches -= count
        start = self._next
        self._next = min(start + count * self._batch, self._samples)
        return Lease(self._epoch, start, self._next)
