"""A user's DataLoader, cut to one worker's samples."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from torch.utils.data import DataLoader, DistributedSampler, RandomSampler

from paceline.spec import RunSpec
from paceline.transport.slate import DATA, Slate


class Sharded:
    """Iterates as the loader did, over this worker's share, in a new order each epoch.

    Every worker gets equally many samples, as synchronous rounds need: where the data does not
    divide evenly, up to one sample a worker is seen twice.
    """

    def __init__(self, loader: DataLoader[Any], spec: RunSpec, index: int, slate: Slate) -> None:
        self._slate = slate
        self._sampler: DistributedSampler[Any] = DistributedSampler(
            loader.dataset,
            num_replicas=spec.workers,
            rank=index,
            shuffle=isinstance(loader.sampler, RandomSampler),
            seed=spec.seed,
        )
        self._loader = DataLoader(
            loader.dataset,
            batch_size=loader.batch_size,
            sampler=self._sampler,
            num_workers=loader.num_workers,
            collate_fn=loader.collate_fn,
            pin_memory=loader.pin_memory,
            drop_last=loader.drop_last,
            timeout=loader.timeout,
            worker_init_fn=loader.worker_init_fn,
        )
        self._waited = 0.0
        self._skip = 0
        self.dataset = loader.dataset
        self.batch_size = loader.batch_size
        self.epoch = -1
        self.last_batch = 0

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> Iterator[Any]:
        self.epoch += 1
        self._sampler.set_epoch(self.epoch)
        began, before = time.monotonic(), self._slate.at(DATA)
        for batch in self._loader:
            self._waited += time.monotonic() - began
            self._slate.back(before)
            began = time.monotonic()
            if self._skip:
                self._skip -= 1
                self._slate.at(DATA)
                continue
            self.last_batch = _count(batch)
            yield batch
            began, before = time.monotonic(), self._slate.at(DATA)
        self._slate.back(before)

    def skip(self, count: int) -> None:
        """Leave out the batches of rounds that were closed without this worker."""
        self._skip += count

    def take_waited(self) -> float:
        """Seconds spent waiting for batches since last asked."""
        waited, self._waited = self._waited, 0.0
        return waited


def _count(batch: Any) -> int:
    """How many samples a batch holds: the length of the first thing in it that has one."""
    if isinstance(batch, dict):
        batch = next(iter(batch.values()), ())
    elif isinstance(batch, (list, tuple)) and batch:
        batch = batch[0]
    try:
        return len(batch)
    except TypeError:
        return 0
