"""The book of leases: every sample of every epoch once, in any order of takes and deaths."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from paceline.data.sampler import Lease
from paceline.launch.leases import LeaseBook

sizes = {
    "samples": st.integers(1, 300),
    "batch": st.integers(1, 50),
    "workers": st.integers(1, 6),
}


def samples_of(leases: list[Lease]) -> Counter[tuple[int, int]]:
    return Counter((lease.epoch, row) for lease in leases for row in range(lease.start, lease.stop))


def batches_of(leases: list[Lease], batch: int) -> int:
    return sum(-(-(lease.stop - lease.start) // batch) for lease in leases)


@given(**sizes, epochs=st.integers(1, 4), data=st.data())
def test_every_sample_once_an_epoch_in_any_order(
    samples: int, batch: int, workers: int, epochs: int, data: st.DataObject
) -> None:
    book = LeaseBook(samples, batch, workers, epochs, None)
    taken = []
    while True:
        worker = data.draw(st.integers(0, workers - 1)) if len(taken) < 30 else 0
        lease = book.take(worker)
        if lease is None:
            break
        assert 0 <= lease.start < lease.stop <= samples
        taken.append(lease)
    assert book.take(0) is None
    expected = Counter((epoch, row) for epoch in range(epochs) for row in range(samples))
    assert samples_of(taken) == expected
    # Whole batches, save for the tail of an epoch: workers cut leases into batches themselves.
    assert batches_of(taken, batch) == epochs * -(-samples // batch)


@given(**sizes, batches=st.integers(1, 60))
def test_a_limit_of_batches_is_exact(samples: int, batch: int, workers: int, batches: int) -> None:
    book = LeaseBook(samples, batch, workers, None, batches)
    taken = []
    while (lease := book.take(0)) is not None:
        taken.append(lease)
    assert batches_of(taken, batch) == batches
    assert set(samples_of(taken).values()) <= {1}


@given(**sizes, epochs=st.integers(1, 3), data=st.data())
def test_what_a_dead_worker_held_is_given_to_others(
    samples: int, batch: int, workers: int, epochs: int, data: st.DataObject
) -> None:
    book = LeaseBook(samples, batch, workers, epochs, None)
    held: dict[int, list[Lease]] = {worker: [] for worker in range(workers)}
    done: list[Lease] = []
    deaths = 0
    while True:
        worker = data.draw(st.integers(0, workers - 1)) if deaths < 15 else 0
        act = data.draw(st.integers(0, 3)) if deaths < 15 else 2
        if act == 0:
            deaths += 1
            book.give_back(worker)
            held[worker].clear()
        elif act == 1 and held[worker]:
            book.confirm(worker)
            done.append(held[worker].pop(0))
        else:
            lease = book.take(worker)
            if lease is None:
                break
            held[worker].append(lease)
    left = [lease for leases in held.values() for lease in leases]
    expected = Counter((epoch, row) for epoch in range(epochs) for row in range(samples))
    assert samples_of(done + left) == expected


def test_leases_shrink_so_that_workers_finish_together() -> None:
    book = LeaseBook(1000, 10, 2, 1, None)
    lengths = []
    while (lease := book.take(0)) is not None:
        lengths.append(lease.stop - lease.start)
    assert lengths[0] == 250
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[-1] == 10


def test_confirming_or_giving_back_nothing_is_nothing() -> None:
    book = LeaseBook(10, 5, 2, 1, None)
    book.confirm(1)
    book.give_back(1)
    assert book.take(0) == Lease(0, 0, 5)
