"""The book of leases: every sample of every epoch once, in any order of takes and deaths."""

from __future__ import annotations

import json
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
        least = data.draw(st.integers(1, 9)) if len(taken) < 30 else 1
        lease = book.take(worker, least)
        if lease is None:
            break
        whole, here = -(-samples // batch), -(-(samples - lease.start) // batch)
        left = here + (epochs - lease.epoch - 1) * whole
        assert batches_of([lease], batch) >= min(least, here, left // (2 * workers))
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


class Lives:
    """Workers that take batches of their leases one by one, and die between or within them."""

    def __init__(self, book: LeaseBook, batch: int, workers: int) -> None:
        self.book = book
        self.batch = batch
        self.held: dict[int, list[Lease]] = {worker: [] for worker in range(workers)}
        self.finished = dict.fromkeys(range(workers), 0)
        self.trained: list[Lease] = []

    def take(self, worker: int) -> bool:
        self.book.confirm(worker, self.finished[worker])
        lease = self.book.take(worker)
        if lease is not None:
            self.held[worker].append(lease)
        return lease is not None

    def train(self, worker: int) -> None:
        if not self.held[worker]:
            return
        epoch, start, stop = self.held[worker].pop(0)
        end = min(start + self.batch, stop)
        self.trained.append(Lease(epoch, start, end))
        self.finished[worker] += 1
        if end < stop:
            self.held[worker].insert(0, Lease(epoch, end, stop))

    def die(self, worker: int, *, comes_back: bool) -> None:
        act = self.book.again if comes_back else self.book.give_back
        act(worker, self.finished[worker])
        self.held[worker].clear()


@given(**sizes, epochs=st.integers(1, 3), data=st.data())
def test_deaths_lose_no_sample_and_repeat_none(
    samples: int, batch: int, workers: int, epochs: int, data: st.DataObject
) -> None:
    lives = Lives(LeaseBook(samples, batch, workers, epochs, None), batch, workers)
    for _ in range(data.draw(st.integers(0, 40))):
        worker = data.draw(st.integers(0, workers - 1))
        match data.draw(st.sampled_from(["take", "train", "train", "die", "go"])):
            case "take":
                lives.take(worker)
            case "train":
                lives.train(worker)
            case "die":
                lives.die(worker, comes_back=True)
            case "go":
                lives.die(worker, comes_back=False)
    more = True
    while more or any(lives.held.values()):
        more = sum(lives.take(worker) for worker in range(workers)) > 0
        for worker in range(workers):
            lives.train(worker)
    expected = Counter((epoch, row) for epoch in range(epochs) for row in range(samples))
    assert samples_of(lives.trained) == expected


def test_what_is_taken_again_is_taken_by_the_same_worker() -> None:
    book = LeaseBook(100, 10, 2, 1, None)
    first = book.take(0)
    book.again(0, 1)
    assert book.take(1) != first
    assert book.take(0) == Lease(0, 10, 20)


def test_leases_shrink_so_that_workers_finish_together() -> None:
    book = LeaseBook(1000, 10, 2, 1, None)
    lengths = []
    while (lease := book.take(0)) is not None:
        lengths.append(lease.stop - lease.start)
    assert lengths[0] == 250
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[-1] == 10


def test_what_is_asked_for_is_given_until_the_end_of_the_last_epoch_is_near() -> None:
    book = LeaseBook(1000, 10, 2, 3, None)
    lengths: dict[int, list[int]] = {0: [], 1: [], 2: []}
    while (lease := book.take(0, least=20)) is not None:
        lengths[lease.epoch].append(lease.stop - lease.start)
    assert lengths[0] == [250, 200, 200, 200, 150]
    assert lengths[2][-5:] == [10] * 5


def test_confirming_or_giving_back_nothing_is_nothing() -> None:
    book = LeaseBook(10, 5, 2, 1, None)
    book.confirm(1, 0)
    book.give_back(1, 0)
    book.again(1, 0)
    assert book.take(0) == Lease(0, 0, 5)


@given(**sizes, epochs=st.integers(1, 3), data=st.data())
def test_across_a_checkpoint_every_sample_counts_once(
    samples: int, batch: int, workers: int, epochs: int, data: st.DataObject
) -> None:
    """Of each worker some number of batches counts, as of a moment of its own while the checkpoint
    was being made; what it did later is undone."""
    lives = Lives(LeaseBook(samples, batch, workers, epochs, None), batch, workers)
    trained: dict[int, list[Lease]] = {worker: [] for worker in range(workers)}

    def work(acts: list[str]) -> None:
        for _ in range(data.draw(st.integers(0, 25))):
            worker = data.draw(st.integers(0, workers - 1))
            match data.draw(st.sampled_from(acts)):
                case "take":
                    lives.take(worker)
                case "train":
                    before = len(lives.trained)
                    lives.train(worker)
                    trained[worker] += lives.trained[before:]
                case "die":
                    lives.die(worker, comes_back=True)

    work(["take", "train", "train", "die"])
    lives.book.remember()
    first = dict(lives.finished)
    work(["take", "train", "train"])
    counts = {w: data.draw(st.integers(first[w], lives.finished[w])) for w in range(workers)}
    kept = json.loads(json.dumps(lives.book.kept()))
    lives.book.forget()
    work(["take", "train", "die"])  # until it is killed

    resumed = Lives(LeaseBook(samples, batch, workers, epochs, None), batch, workers)
    resumed.book.restore(kept)
    for worker, count in counts.items():
        resumed.trained += trained[worker][:count]
        resumed.finished[worker] = count
        resumed.book.again(worker, count)
    more = True
    while more or any(resumed.held.values()):
        more = sum(resumed.take(worker) for worker in range(workers)) > 0
        for worker in range(workers):
            resumed.train(worker)
    expected = Counter((epoch, row) for epoch in range(epochs) for row in range(samples))
    assert samples_of(resumed.trained) == expected


@given(**sizes, batches=st.integers(1, 60), first=st.integers(0, 30), longer=st.integers(0, 20))
def test_a_limit_of_batches_holds_across_a_checkpoint(
    samples: int, batch: int, workers: int, batches: int, first: int, longer: int
) -> None:
    """It may be another by then."""
    book = LeaseBook(samples, batch, workers, None, batches)
    taken = [lease for _ in range(first) if (lease := book.take(0)) is not None]
    resumed = LeaseBook(samples, batch, workers, None, batches + longer)
    resumed.restore(book.kept())
    while (lease := resumed.take(0)) is not None:
        taken.append(lease)
    assert batches_of(taken, batch) == batches + longer
    assert set(samples_of(taken).values()) <= {1}
