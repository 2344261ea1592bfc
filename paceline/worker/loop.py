"""The step loop.

    take a batch ─► forward, backward ─► exchange ─► record
        data            compute        exchange, wait, update

The next batch is made while the exchange has nothing but waiting to do, where it has.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from paceline.data.sampler import Lot
from paceline.exchange.base import Exchange, Gradient
from paceline.exchange.replica import Replica
from paceline.tasks.base import Task
from paceline.worker.reporter import Reporter

Made = tuple[Lot, Any]


def train(
    task: Task,
    replica: Replica,
    batches: Iterator[Made],
    exchange: Exchange,
    lr: float,
    reporter: Reporter,
) -> None:
    """Take steps until the batches end or the exchange says to stop."""
    model = replica.model
    model.train()
    ahead = Ahead(batches)
    while (made := ahead.take()) is not None:
        lot, batch = made
        fetched = time.monotonic()
        value = float("nan")
        count = len(lot.rows)
        gradient = Gradient(count, lot.whole, lr, reporter.stopping)
        if count:  # a worker may have none of a short last batch, and still takes the round
            loss = task.loss(model, batch)
            exchange.expect(gradient)
            share = count / lot.whole if exchange.summed else 1.0
            (loss if share == 1.0 else loss * share).backward()  # type: ignore[no-untyped-call]
            value = loss.item()
        arrived = time.monotonic()
        data = ahead.spent()
        outcome = exchange.step(gradient, ahead.prepare)
        reporter.step(lot, value, data, arrived - fetched, arrived, outcome)
        if outcome.stop:
            break
        ahead.skip(outcome.skipped)


class Ahead:
    """The next batch, made when asked for, or before if there is time."""

    def __init__(self, batches: Iterator[Made]) -> None:
        self._batches = batches
        self._next: Made | None = None
        self._prepared = False
        self._spent = 0.0

    def prepare(self) -> float:
        """Make the next batch unless it is made; the seconds that took."""
        if self._prepared:
            return 0.0
        began = time.monotonic()
        self._next = next(self._batches, None)
        self._prepared = True
        seconds = time.monotonic() - began
        self._spent += seconds
        return seconds

    def take(self) -> Made | None:
        """The next batch, or None after the last."""
        self.prepare()
        self._prepared = False
        return self._next

    def skip(self, count: int) -> None:
        """Leave out the batches of rounds that were closed without this worker."""
        for _ in range(count):
            self.take()

    def spent(self) -> float:
        """Seconds spent on making batches since last asked."""
        spent, self._spent = self._spent, 0.0
        return spent
