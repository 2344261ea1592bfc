"""A user's loader cut to one worker's samples."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from paceline.spec import RunSpec
from paceline.transport.slate import Slate
from paceline.worker.sharded import Sharded


def loaders(samples: int, workers: int, shuffle: bool) -> list[Sharded]:
    spec = RunSpec(strategy="allreduce", workers=workers, seed=4)
    rows = TensorDataset(torch.arange(samples))
    return [
        Sharded(DataLoader(rows, batch_size=3, shuffle=shuffle), spec, w, Slate())
        for w in range(workers)
    ]


def rows(loader: Sharded) -> list[int]:
    return [row for (batch,) in loader for row in batch.tolist()]


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_all_samples_are_seen_and_all_workers_see_as_many(workers: int, shuffle: bool) -> None:
    samples = 20
    cut = loaders(samples, workers, shuffle)
    assert len({len(loader) for loader in cut}) == 1
    for _ in range(2):
        seen = [rows(loader) for loader in cut]
        assert len({len(part) for part in seen}) == 1
        counts = Counter(row for part in seen for row in part)
        assert counts.keys() == set(range(samples))
        assert sum(counts.values()) - samples < workers  # an uneven tail is filled up


def test_the_order_is_new_each_epoch_and_the_same_for_one_seed() -> None:
    one, again = loaders(50, 2, True)[0], loaders(50, 2, True)[0]
    first = rows(one)
    assert rows(again) == first
    assert rows(one) != first


def test_an_unshuffled_loader_stays_so() -> None:
    one = loaders(6, 2, False)[1]
    assert rows(one) == [1, 3, 5]
    assert rows(one) == [1, 3, 5]


def test_it_counts_what_it_gave() -> None:
    one = loaders(8, 2, False)[0]
    counted = [one.last_batch for _ in one]
    assert counted == [3, 1]
    assert one.epoch == 0
    assert one.take_waited() >= 0
    assert one.take_waited() == 0


def test_what_is_skipped_is_left_out_across_epochs() -> None:
    one = loaders(9, 1, False)[0]
    seen = []
    for (batch,) in one:
        seen.append(batch.tolist())
        if len(seen) == 2:
            one.skip(2)
    assert seen == [[0, 1, 2], [3, 4, 5]]
    assert rows(one) == [3, 4, 5, 6, 7, 8]
    assert len(one) == 3
