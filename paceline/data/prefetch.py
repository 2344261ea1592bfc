"""Batches made before they are asked for, where that pays."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Generator, Iterable, Iterator
from itertools import islice
from typing import Protocol, TypeAlias, TypeVar

from paceline.data.base import Batch, Rows, Samples

TRIED = 8  # batches made inline before deciding
CHEAP = 1e-3  # seconds; below, handing the interpreter's lock to a thread costs more than it hides
DEPTH = 2  # batches made ahead
PATIENCE = 1.0  # seconds between looks at whether the thread lives, and for it to end


class Lot(Protocol):
    """Anything that says which samples it is about."""

    @property
    def rows(self) -> Rows: ...


L = TypeVar("L", bound=Lot)
Made: TypeAlias = tuple[L, Batch]


class Prefetch(Iterator[Made[L]]):
    """Yields each lot with its batch, in order.

    Starts inline and measures; where batches prove slow it goes on in one thread that works up to
    two lots ahead. The lots may block: a slow source then holds up the thread, not the consumer's
    step. Errors of lots and samples are raised here. Close it from the thread that consumes it.
    """

    def __init__(self, samples: Samples, lots: Iterable[L]) -> None:
        self._samples = samples
        self._lots = iter(lots)
        self._tried: list[float] = []  # seconds that the first batches took
        self._batches = self._make()

    def __next__(self) -> Made[L]:
        return next(self._batches)

    def forget(self) -> None:
        """Drop what was made ahead. Before the next is asked for, the lots may be set back."""
        self._batches.close()
        self._batches = self._make()

    def close(self) -> None:
        """End the thread, if there is one; it is given a second to finish the lot it is at."""
        self._batches.close()

    def _make(self) -> Generator[Made[L], None, None]:
        for lot in islice(self._lots, TRIED - len(self._tried)):
            begin = time.perf_counter()
            batch = self._samples.batch(lot.rows)
            self._tried.append(time.perf_counter() - begin)
            yield lot, batch
        # The quickest of them counts: the first to touch a file's pages are slower than the rest.
        if len(self._tried) == TRIED and min(self._tried) > CHEAP:
            yield from _ahead(self._samples, self._lots)
        else:
            for lot in self._lots:
                yield lot, self._samples.batch(lot.rows)


def _ahead(samples: Samples, lots: Iterator[L]) -> Generator[Made[L], None, None]:
    made: queue.SimpleQueue[Made[L] | BaseException | None] = queue.SimpleQueue()
    room = threading.Semaphore(DEPTH)
    closing = threading.Event()

    def work() -> None:
        try:
            # Room first, then a lot: one that is taken and never used has to be given back.
            while room.acquire() and not closing.is_set():
                lot = next(lots, None)
                if lot is None or closing.is_set():
                    break
                made.put((lot, samples.batch(lot.rows)))
            made.put(None)
        except BaseException as wrong:  # noqa: BLE001  it is raised where the batch is asked for
            made.put(wrong)

    thread = threading.Thread(target=work, name="paceline-prefetch", daemon=True)
    thread.start()
    try:
        while (item := _take(made, thread)) is not None:
            if isinstance(item, BaseException):
                raise item
            room.release()
            yield item
    finally:
        closing.set()
        room.release()
        if thread is not threading.current_thread():
            thread.join(PATIENCE)


def _take(
    made: queue.SimpleQueue[Made[L] | BaseException | None], thread: threading.Thread
) -> Made[L] | BaseException | None:
    while True:
        try:
            return made.get(timeout=PATIENCE)
        except queue.Empty:
            if not thread.is_alive() and made.empty():
                return RuntimeError("the thread that makes batches is gone: was this forked?")
