"""Who gets which samples: every one once an epoch, whatever the numbers."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.data.sampler import Lease, Lot, Order, evenly, leased, no_rows, rounds, slices

samples_ = st.integers(1, 200)
batch_ = st.integers(1, 40)
workers_ = st.integers(1, 6)


def lots_of(
    samples: int, batch: int, workers: int, epochs: int | None, steps: int | None = None
) -> list[list[Lot]]:
    """A list of lots for each worker."""
    return [
        list(slices(Order(samples, 7), batch, worker, workers, epochs, steps))
        for worker in range(workers)
    ]


@given(samples=samples_, batch=batch_, workers=workers_, epochs=st.integers(1, 3))
def test_every_sample_once_an_epoch(samples: int, batch: int, workers: int, epochs: int) -> None:
    each = lots_of(samples, batch, workers, epochs)
    assert len({len(lots) for lots in each}) == 1
    assert len(each[0]) == epochs * rounds(samples, batch * workers)
    for epoch in range(epochs):
        rows = [row for lots in each for lot in lots if lot.epoch == epoch for row in lot.rows]
        assert sorted(rows) == list(range(samples))


@given(samples=samples_, batch=batch_, workers=workers_)
def test_a_round_is_the_batch_of_a_lone_worker(samples: int, batch: int, workers: int) -> None:
    """So the result does not depend on how many workers share it."""
    each = lots_of(samples, batch, workers, 2)
    (alone,) = lots_of(samples, batch * workers, 1, 2)
    for lot, *parts in zip(alone, *each, strict=True):
        assert np.array_equal(np.concatenate([part.rows for part in parts]), lot.rows)
        assert {part.whole for part in parts} == {len(lot.rows)}
        assert {part.last for part in parts} == {lot.last}
        assert {part.epoch for part in parts} == {lot.epoch}
        assert {part.seen for part in parts} == {lot.seen}


@given(samples=samples_, batch=batch_, workers=workers_)
def test_a_round_knows_how_many_samples_came_before_it(
    samples: int, batch: int, workers: int
) -> None:
    before = 0
    for lot in lots_of(samples, batch, workers, 3)[0]:
        assert lot.seen == before
        before += lot.whole


@given(samples=samples_, batch=batch_, workers=workers_, steps=st.integers(1, 50))
def test_steps_are_exact(samples: int, batch: int, workers: int, steps: int) -> None:
    for lots in lots_of(samples, batch, workers, None, steps):
        assert len(lots) == steps
        assert all(len(lot.rows) <= batch for lot in lots)


@given(samples=samples_, batch=batch_, workers=workers_)
def test_a_short_batch_is_shared_evenly(samples: int, batch: int, workers: int) -> None:
    last = [lots[-1] for lots in lots_of(samples, batch, workers, 1)]
    shares = [len(lot.rows) for lot in last]
    assert sum(shares) == last[0].whole
    assert max(shares) - min(shares) <= 1


@given(whole=st.integers(0, 240), workers=workers_)
def test_even_shares_follow_one_another(whole: int, workers: int) -> None:
    shares = evenly(whole, workers)
    assert [begin for begin, _ in shares] == [0, *(end for _, end in shares[:-1])]
    assert shares[-1][1] == whole
    assert max(e - b for b, e in shares) - min(e - b for b, e in shares) <= 1


@given(samples=samples_, whole=batch_, data=st.data())
def test_whatever_the_shares_and_whoever_takes_them_every_sample_once(
    samples: int, whole: int, data: st.DataObject
) -> None:
    """Three workers whose shares change between rounds, some of them to nothing."""
    each = [slices(Order(samples, 7), whole, 0, 1, 1, None) for _ in range(3)]
    taken = []
    for turn in range(rounds(samples, whole)):
        cut = sorted(data.draw(st.lists(st.integers(0, whole), min_size=2, max_size=2)))
        shares = zip((0, *cut), (*cut, whole), strict=True)
        for lots, share in zip(each, shares, strict=True):
            lots.go_on(turn, share)
            lot = next(lots)
            assert lot.round == turn
            taken += lot.rows.tolist()
    assert sorted(taken) == list(range(samples))
    assert [next(lots, None) for lots in each] == [None] * 3


def test_a_worker_goes_on_where_it_is_told_to() -> None:
    lots = slices(Order(100, 0), 10, 0, 2, 3, None)
    all_of_them = list(lots)
    assert len(all_of_them) == 15
    lots.go_on(7)
    again = list(lots)
    assert [lot.round for lot in again] == list(range(7, 15))
    for lot, before in zip(again, all_of_them[7:], strict=True):
        assert np.array_equal(lot.rows, before.rows)
        assert lot[1:] == before[1:]


@given(samples=samples_, batch=batch_, seed=st.integers(0, 2**32 - 1))
def test_the_order_follows_from_seed_and_epoch_alone(samples: int, batch: int, seed: int) -> None:
    one, two = Order(samples, seed), Order(samples, seed)
    later = one.rows(3, 0, samples).copy()
    one.rows(0, 0, batch)
    assert np.array_equal(one.rows(3, 0, samples), later)
    assert np.array_equal(two.rows(3, 0, samples), later)


def test_another_seed_or_epoch_is_another_order() -> None:
    rows = [Order(100, seed).rows(epoch, 0, 100).tolist() for seed in (0, 1) for epoch in (0, 1)]
    assert len({tuple(order) for order in rows}) == 4


@given(samples=samples_, batch=batch_, data=st.data())
def test_leases_are_cut_into_batches(samples: int, batch: int, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, samples - 1))
    stop = data.draw(st.integers(start + 1, samples))
    order = Order(samples, 7)
    lots = list(leased(order, batch, [Lease(2, start, stop)]))
    rows = np.concatenate([lot.rows for lot in lots])
    assert np.array_equal(rows, order.rows(2, start, stop))
    assert all(len(lot.rows) == lot.whole == batch for lot in lots[:-1])
    assert [lot.last for lot in lots] == [False] * (len(lots) - 1) + [stop == samples]
    assert {lot.epoch for lot in lots} == {2}
    assert [lot.seen for lot in lots] == [2 * samples + at for at in range(start, stop, batch)]


def test_leases_are_asked_for_one_by_one() -> None:
    asked = []

    def source():
        for start in (0, 4):
            asked.append(start)
            yield Lease(0, start, start + 4)

    lots = leased(Order(8, 0), 2, source())
    list(islice(lots, 2))
    assert asked == [0]


@pytest.mark.parametrize("count", [0, 1, 1000])
def test_rows_that_nobody_asked_for_have_a_length(count: int) -> None:
    assert len(no_rows(count)) == count


@given(samples=samples_, batch=batch_, crew=st.sets(st.integers(0, 9), min_size=1))
def test_whoever_is_there_shares_the_batch_of_those_of_the_start(
    samples: int, batch: int, crew: set[int]
) -> None:
    there = sorted(crew)
    each = [list(slices(Order(samples, 7), batch, w, 4, 1, None, there)) for w in there]
    for lot, *parts in zip(*lots_of(samples, 4 * batch, 1, 1), *each, strict=True):
        assert np.array_equal(np.concatenate([part.rows for part in parts]), lot.rows)
    later = slices(Order(samples, 7), batch, 10, 4, 1, None, there)
    assert all(not len(lot.rows) for lot in later)
