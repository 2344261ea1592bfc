from __future__ import annotations

import gc
import threading
import time
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pytest

from paceline.data import prefetch
from paceline.data.base import Batch, Rows
from paceline.data.prefetch import DEPTH, TRIED, Prefetch


class Lot(NamedTuple):
    rows: Rows


class Slowly:
    """Samples that are their own row numbers, each batch taking a while."""

    def __init__(self, seconds: float, fail_at: int = -1) -> None:
        self.seconds = seconds
        self.fail_at = fail_at
        self.threads: set[str] = set()

    def __len__(self) -> int:
        return 1000

    def batch(self, rows: Rows) -> Batch:
        self.threads.add(threading.current_thread().name)
        time.sleep(self.seconds)
        if rows[0] == self.fail_at:
            raise OSError(f"sample {rows[0]} is damaged")
        return (rows,)


SLOW = 2e-3


def lots(count: int) -> Iterator[Lot]:
    return (Lot(np.array([place])) for place in range(count))


def prefetch_threads() -> list[threading.Thread]:
    return [t for t in threading.enumerate() if t.name == "paceline-prefetch"]


@pytest.fixture(autouse=True)
def nothing_is_left_running() -> Iterator[None]:
    yield
    assert not prefetch_threads()


@pytest.mark.parametrize("count", [0, 1, TRIED - 1, TRIED, TRIED + 1, 40])
@pytest.mark.parametrize("seconds", [0, SLOW])
def test_every_lot_comes_once_in_order_with_its_batch(count: int, seconds: float) -> None:
    seen = []
    for lot, (rows,) in Prefetch(Slowly(seconds), lots(count)):
        assert rows is lot.rows
        seen.append(int(rows[0]))
    assert seen == list(range(count))


def test_slow_batches_are_made_in_one_thread() -> None:
    samples = Slowly(SLOW)
    list(Prefetch(samples, lots(30)))
    assert samples.threads == {threading.main_thread().name, "paceline-prefetch"}


def test_cheap_batches_are_made_inline_though_one_was_slow() -> None:
    samples = Slowly(0)
    batches = Prefetch(samples, lots(200))
    samples.seconds = 0.02
    next(batches)
    samples.seconds = 0
    assert len(list(batches)) == 199
    assert samples.threads == {threading.main_thread().name}


def test_the_thread_hides_the_making_of_batches() -> None:
    batches = Prefetch(Slowly(0.01), lots(TRIED + 12))
    for _ in range(TRIED + 1):
        next(batches)
    waited = 0.0
    for _ in range(10):
        time.sleep(0.03)
        begin = time.perf_counter()
        next(batches)
        waited += time.perf_counter() - begin
    assert waited < 0.08  # making them takes 0.1
    batches.close()


def test_it_never_runs_further_ahead_than_its_depth() -> None:
    taken = []

    def counted() -> Iterator[Lot]:
        for lot in lots(100):
            taken.append(lot)
            yield lot

    batches = Prefetch(Slowly(SLOW), counted())
    for _ in range(TRIED + 1):
        next(batches)
    deadline = time.monotonic() + 5
    while len(taken) < TRIED + 1 + DEPTH and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.05)
    batches.close()
    assert len(taken) == TRIED + 1 + DEPTH


@pytest.mark.parametrize("at", [0, TRIED - 1, TRIED, TRIED + 5])
def test_an_error_in_samples_surfaces_in_its_place(at: int) -> None:
    batches = Prefetch(Slowly(SLOW, fail_at=at), lots(50))
    for _ in range(at):
        next(batches)
    with pytest.raises(OSError, match=f"sample {at} is damaged"):
        next(batches)
    assert list(batches) == []


@pytest.mark.parametrize("at", [0, TRIED, TRIED + 5])
def test_an_error_in_the_lots_surfaces_in_its_place(at: int) -> None:
    def failing() -> Iterator[Lot]:
        yield from lots(at)
        raise ConnectionError("no more leases")

    batches = Prefetch(Slowly(SLOW), failing())
    for _ in range(at):
        next(batches)
    with pytest.raises(ConnectionError, match="no more leases"):
        next(batches)


@pytest.mark.parametrize("taken", [0, 1, TRIED, TRIED + 1, TRIED + 4])
def test_closing_early_ends_the_thread_at_once(taken: int) -> None:
    batches = Prefetch(Slowly(SLOW), lots(10_000))
    for _ in range(taken):
        next(batches)
    begin = time.perf_counter()
    batches.close()
    batches.close()
    assert time.perf_counter() - begin < 0.5
    assert not prefetch_threads()
    assert list(batches) == []


def test_a_forgotten_one_ends_its_thread_too() -> None:
    batches = Prefetch(Slowly(SLOW), lots(10_000))
    for _ in range(TRIED + 1):
        next(batches)
    assert len(prefetch_threads()) == 1
    del batches
    gc.collect()
    assert not prefetch_threads()


def test_closing_does_not_hang_on_lots_that_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefetch, "PATIENCE", 0.1)
    message = threading.Event()

    def blocking() -> Iterator[Lot]:
        yield from lots(TRIED + 1)
        message.wait(20)
        yield from lots(5)

    batches = Prefetch(Slowly(SLOW), blocking())
    for _ in range(TRIED + 1):
        next(batches)
    begin = time.perf_counter()
    batches.close()
    assert time.perf_counter() - begin < 1
    message.set()
    for thread in prefetch_threads():
        thread.join(5)


def test_lots_that_come_late_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefetch, "PATIENCE", 0.05)

    def late() -> Iterator[Lot]:
        yield from lots(TRIED)
        time.sleep(0.2)
        yield from lots(2)

    assert len(list(Prefetch(Slowly(SLOW), late()))) == TRIED + 2
