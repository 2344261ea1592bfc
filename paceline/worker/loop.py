"""The step loop.

    take a batch ─► forward, backward ─► exchange ─► record
        data            compute        exchange, wait, update

The next batch is made while the exchange has nothing but waiting to do, where it has. Samples that
are more than one batch go forward and back a batch at a time, and their gradients are added up.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from torch import nn

from paceline.data.base import Batch
from paceline.data.sampler import Lot
from paceline.exchange.base import Exchange, Gradient
from paceline.exchange.replica import Replica
from paceline.tasks.base import Task
from paceline.worker.recipe import Recipe
from paceline.worker.reporter import Reporter

Made = tuple[Lot, Any]


def train(
    task: Task,
    replica: Replica,
    batches: Iterator[Made],
    exchange: Exchange,
    recipe: Recipe,
    most: int,
    reporter: Reporter,
) -> None:
    """Take steps until the batches end or the exchange says to stop.

    `most` is how many samples may go forward and back at once.
    """
    model = replica.model
    model.train()
    ahead = Ahead(batches)
    while (made := ahead.take()) is not None:
        lot, batch = made
        fetched = time.monotonic()
        count = len(lot.rows)
        gradient = Gradient(count, lot.whole, recipe.rate(lot.seen), reporter.stopping)
        share = count / lot.whole if exchange.summed else 1.0
        expect = partial(exchange.expect, gradient)
        value = gradients(task, model, batch, count, most, share, expect)
        arrived = time.monotonic()
        data = ahead.spent()
        outcome = exchange.step(gradient, ahead.prepare)
        reporter.step(lot, value, data, arrived - fetched, arrived, outcome)
        if outcome.stop:
            break
        ahead.skip(outcome.skipped)


def gradients(
    task: Task,
    model: nn.Module,
    batch: Batch,
    count: int,
    most: int,
    share: float,
    expect: Callable[[], None],
) -> float:
    """Leave `share` times the gradients of the mean loss over `count` samples; that loss.

    Goes in parts of at most `most` samples; `expect` is told before the part that completes them.
    A worker may have no sample of a short last batch: no gradients, and a loss that is not known.
    """
    value = 0.0 if count else float("nan")
    for begin in range(0, count, most):
        end = min(begin + most, count)
        whole = end - begin == count
        piece = batch if whole else tuple(column[begin:end] for column in batch)
        part = (end - begin) / count
        if end == count:
            expect()
        value += part * task.gradients(model, piece, part * share)
    return value


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
