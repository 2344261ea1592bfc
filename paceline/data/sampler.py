"""Who gets which samples. An epoch is one permutation from (seed, epoch); everything follows.

Synchronous workers take consecutive slices of the next global batch, so what a round trains on
does not depend on how many workers share it. Asynchronous workers lease ranges of the permutation.
Either way every sample is taken once an epoch, uneven tails included.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence, Sized
from itertools import pairwise
from typing import NamedTuple

import numpy as np

Rows = np.ndarray

MIXED = 64  # chunks at a time
RUN = 8  # samples that stay side by side, if chunks are of whole runs


class Lot(NamedTuple):
    """The samples of one step. `whole` counts those of the round over all workers.

    `last` marks the worker's last step of the epoch, `seen` counts the samples of the run that
    come before the round, or where there are no rounds before this step's own. `round` counts
    from 0, where there are rounds; `share` is (begin, end, of how many) of a whole batch.
    """

    rows: Rows
    whole: int
    epoch: int
    last: bool
    seen: int = 0
    round: int = 0
    share: tuple[int, int, int] = (0, 1, 1)


class Lease(NamedTuple):
    """A range of an epoch's permutation, given to one worker."""

    epoch: int
    start: int
    stop: int


class Order:
    """The order of samples in each epoch: one permutation, of which one epoch's is kept."""

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


class InChunks(Order):
    """For samples that lie together on disk, or are too many for a permutation of all of them.

    Chunks of samples side by side come in one permutation. Some of them at a time are mixed: runs
    of a few samples, side by side still, in one permutation. So a sample comes with others from
    everywhere, and what is read at a time is little, and mostly in order.
    """

    def __init__(self, samples: int, seed: int, chunk: int) -> None:
        super().__init__(samples, seed)
        from paceline.kernels import order as loops  # numba is only there where it is needed

        self._loops = loops
        self._chunk, self._run = chunk, math.gcd(chunk, RUN)
        self._chunks: Rows = np.empty(0, np.int64)
        self._ends: Rows = np.empty(0, np.int64)  # of what is mixed at a time, by number
        self._mixed = -1, self._rows  # the last of those, and where its runs begin
        none = np.uint64(0), self._rows
        loops.mix(self._chunks, chunk, self._run, samples, *none)  # they are here from now on
        loops.spread(self._rows, self._run, 0, self._rows)

    def rows(self, epoch: int, start: int, stop: int) -> Rows:
        if epoch != self._epoch:
            count = -(-self.samples // self._chunk)
            self._chunks = np.random.default_rng([self._seed, epoch]).permutation(count)
            sizes = np.minimum(self._chunk, self.samples - self._chunks * self._chunk)
            ends = np.cumsum(sizes)
            self._ends = np.append(ends[MIXED - 1 : -1 : MIXED], ends[-1:])
            self._epoch = epoch
            self._mixed = -1, self._rows
        rows, done = np.empty(stop - start, np.int64), 0
        while done < len(rows):
            number = int(np.searchsorted(self._ends, start + done, side="right"))
            first = int(self._ends[number - 1]) if number else 0
            if self._mixed[0] != number:
                self._mixed = number, self._mix(number)
            begin, end = start + done - first, min(stop, int(self._ends[number])) - first
            some = rows[done : done + end - begin]
            self._loops.spread(self._mixed[1], self._run, begin, some)
            done += len(some)
        return rows

    def _mix(self, number: int) -> Rows:
        """Where the runs begin of what is mixed together."""
        chunks = self._chunks[number * MIXED : (number + 1) * MIXED]
        size = int(np.minimum(self._chunk, self.samples - chunks * self._chunk).sum())
        seeds = np.random.SeedSequence([self._seed, self._epoch, number])
        begins = np.empty(-(-size // self._run), np.int64)
        key = seeds.generate_state(1, np.uint64)[0]
        self._loops.mix(chunks, self._chunk, self._run, self.samples, key, begins)
        return begins


def order(samples: Sized, seed: int) -> Order:
    """As these samples are best taken: they may say that they lie in chunks."""
    chunk: int = getattr(samples, "chunk", 0)
    return InChunks(len(samples), seed, chunk) if chunk else Order(len(samples), seed)


def evenly(whole: int, parts: int) -> list[tuple[int, int]]:
    """Even parts of a batch of `whole` samples, one after another."""
    cut = [whole * p // parts for p in range(parts + 1)] if parts else []
    return list(pairwise(cut))


class Slices(Iterator[Lot]):
    """A synchronous worker's lots, one a round; where a batch is short, some are empty.

    Round r is the r-th global batch of the run, `whole` samples of an epoch's permutation. `share`
    is (begin, end) of this worker's part of a whole batch; of a short one it takes as large a part.
    """

    def __init__(
        self,
        order: Order,
        whole: int,
        share: tuple[int, int],
        epochs: int | None,
        steps: int | None,
    ) -> None:
        self._order = order
        self._whole = whole
        self._share = share
        self._rounds = rounds(order.samples, whole)
        self._end = min(
            (n for n in (steps, epochs and epochs * self._rounds) if n is not None), default=None
        )
        self._round = 0

    def go_on(self, round_: int, share: tuple[int, int] | None = None) -> None:
        """From that round on, with another share if one is given."""
        self._round = round_
        self._share = share or self._share

    def __next__(self) -> Lot:
        now = self._round
        if self._end is not None and now >= self._end:
            raise StopIteration
        self._round += 1
        epoch, turn = divmod(now, self._rounds)
        first = turn * self._whole
        count = min(self._whole, self._order.samples - first)
        begin, end = (count * at // self._whole for at in self._share)
        return Lot(
            rows=self._order.rows(epoch, first + begin, first + end),
            whole=count,
            epoch=epoch,
            last=turn == self._rounds - 1,
            seen=epoch * self._order.samples + first,
            round=now,
            share=(*self._share, self._whole),
        )


def slices(
    order: Order,
    batch: int,
    worker: int,
    workers: int,
    epochs: int | None,
    steps: int | None,
    crew: Sequence[int] | None = None,
) -> Slices:
    """The lots of one of several workers who all take `batch` samples a round.

    If others share it now, that is the `crew`; one that comes later has none, until it is told its
    share.
    """
    there = range(workers) if crew is None else crew
    whole = batch * workers
    share = evenly(whole, len(there))[there.index(worker)] if worker in there else (0, 0)
    return Slices(order, whole, share, epochs, steps)


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


def rounds(samples: int, whole: int) -> int:
    """Global batches in an epoch."""
    return -(-samples // whole)
