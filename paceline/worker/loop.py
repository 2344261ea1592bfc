"""The step loop.

take a batch ─► forward, backward ─► exchange ─► record
    data            compute        exchange, wait, update
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


def train(
    task: Task,
    replica: Replica,
    batches: Iterator[tuple[Lot, Any]],
    exchange: Exchange,
    lr: float,
    reporter: Reporter,
) -> None:
    """Take steps until the batches end or the exchange says to stop."""
    model = replica.model
    model.train()
    began = time.monotonic()
    for lot, batch in batches:
        fetched = time.monotonic()
        value = float("nan")
        count = len(lot.rows)
        if count:  # a worker may have none of a short last batch, and still takes the round
            loss = task.loss(model, batch)
            loss.backward()  # type: ignore[no-untyped-call]
            value = loss.item()
        arrived = time.monotonic()
        outcome = exchange.step(Gradient(count, lot.whole, lr, reporter.stopping))
        began = reporter.step(lot, value, fetched - began, arrived - fetched, arrived, outcome)
        if outcome.stop:
            break
