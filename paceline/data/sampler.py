"""Who gets which samples. An epoch is one permutation from (seed, epoch); everything follows.

Synchronous workers take consecutive slices of the next global batch, so what a round trains on
does not depend on how many workers share it. Asynchronous workers lease ranges of the permutation.
Either way every sample is taken once an epoch, uneven tails included.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

Rows = np.ndarray


class Lot(NamedTuple):
    """The samples of one step. `whole` counts those of the round over all workers.

    `last` marks the worker's last step of the epoch, `seen` counts the samples of the run that
    come before the round, or where there are no rounds before this step's own.
    """

    rows: Rows
    whole: int
    epoch: int
    last: bool
    seen: int = 0


class Lease(NamedTuple):
    """A range of an epoch's permutation, given to one worker."""

    epoch: int
    start: int
    stop: int


class Order:
    """The order of samples in each epoch; keeps one epoch's permutation at a time."""

    def __init__(self, samples: int, seed: int) -> None:
        self.samples = samples
        self._seed = seed
        self._epoch = -1
        self._rows: Rows = np.empty(0, np.int64)

    def rows(self, epoch: int, start: int, stop: int) -> Rows:
        if epoch != self._epoch:
            self._rows = np.random.default_rng([self._seed, epoch]).permutation(self.samples)
            self._epoch = epoch
        return self._rows[start:stop]


def bounds(count: int, batch: int, workers: int) -> list[int]:
    """Where each worker's slice of a global batch of `count` samples begins, and the end.

    A short last batch is shared out evenly, so that nobody idles more than one sample's worth.
    """
    if count == batch * workers:
        return [batch * w for w in range(workers + 1)]
    return [count * w // workers for w in range(workers + 1)]


def slices(
    order: Order, batch: int, worker: int, workers: int, epochs: int | None, steps: int | None
) -> Iterator[Lot]:
    """A synchronous worker's lots: as many as every other worker's, some of the last empty."""
    whole = batch * workers
    taken = 0
    epoch = 0
    while epochs is None or epoch < epochs:
        for begin in range(0, order.samples, whole):
            if steps is not None and taken == steps:
                return
            count = min(whole, order.samples - begin)
            cut = bounds(count, batch, workers)
            taken += 1
            yield Lot(
                rows=order.rows(epoch, begin + cut[worker], begin + cut[worker + 1]),
                whole=count,
                epoch=epoch,
                last=begin + whole >= order.samples,
                seen=epoch * order.samples + begin,
            )
        epoch += 1


def leased(order: Order, batch: int, leases: Iterable[Lease]) -> Iterator[Lot]:
    """An asynchronous worker's lots: its leases, cut into batches."""
    for lease in leases:
        for begin in range(lease.start, lease.stop, batch):
            end = min(begin + batch, lease.stop)
            yield Lot(
                rows=order.rows(lease.epoch, begin, end),
                whole=end - begin,
                epoch=lease.epoch,
                last=end == order.samples,
                seen=lease.epoch * order.samples + begin,
            )


def no_rows(count: int) -> Rows:
    """Stands for `count` samples whose rows nobody asked for."""
    return np.broadcast_to(np.int64(-1), (count,))


def rounds(samples: int, batch: int, workers: int) -> int:
    """Steps each worker takes in an epoch of slices."""
    return -(-samples // (batch * workers))
