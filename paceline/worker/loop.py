"""The step loop.

    take a batch ─► copy, forward, backward ─► encode, push, pull, wait ─► update ─► record
        data               compute                exchange       wait      update

The next batch is made while the exchange has nothing but waiting to do, where it has. Samples that
are too many at once go forward and back in even parts, and their gradients are added up. A round
that somebody left in the middle of it is taken again, with other shares; only what counts is told.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from torch import nn

from paceline.data.base import Batch
from paceline.data.sampler import evenly
from paceline.exchange.base import Exchange, Gradient
from paceline.exchange.replica import Replica
from paceline.tasks.base import Task
from paceline.transport.slate import AT, COMPUTE, EXCHANGE, ROUND, Slate
from paceline.worker.batches import Batches
from paceline.worker.recipe import Recipe
from paceline.worker.reporter import Reporter


def train(
    task: Task,
    replica: Replica,
    batches: Batches,
    exchange: Exchange,
    recipe: Recipe,
    most: int,
    reporter: Reporter,
    slate: Slate,
) -> None:
    """Take steps until the batches end or the exchange says to stop.

    `most` is how many samples may go forward and back at once.
    """
    model = replica.model
    model.train()
    while (made := batches.take()) is not None:
        lot, batch = made
        fetched = batches.taken
        slate.words[ROUND] = max(lot.round, reporter.taken) + 1
        slate.words[AT] = COMPUTE
        count = len(lot.rows)
        rate = recipe.rate(lot.seen)
        gradient = Gradient(count, lot.whole, rate, *reporter.asked, began=fetched)
        share = count / lot.whole if exchange.summed else 1.0
        expect = partial(exchange.expect, gradient)
        value, forward = gradients(task, model, batch, count, most, share, expect, fetched)
        del made, batch  # the next is made where this one was: what is in the cache stays there
        reporter.harm.drag(fetched)
        data, copy = batches.spent()
        slate.words[AT] = EXCHANGE
        outcome = exchange.step(gradient, batches.prepare)
        if outcome.again:
            batches.go_on(lot.round, outcome.share)
            continue
        reporter.step(lot, count, value, data, copy, forward, fetched, outcome)
        if outcome.stop:
            break
        if outcome.skipped or outcome.share is not None:
            batches.go_on(lot.round + 1 + outcome.skipped, outcome.share)


def gradients(
    task: Task,
    model: nn.Module,
    batch: Batch,
    count: int,
    most: int,
    share: float,
    expect: Callable[[], None],
    began: float,
) -> tuple[float, float]:
    """Leave `share` times the gradients of the mean loss over `count` samples: that loss, and the
    seconds of forward alone.

    Goes in even parts of at most `most` samples; `expect` is told before the last of them. It all
    `began` when there was a batch. A worker may have no sample of a short last batch: no gradients,
    and a loss that is not known.
    """
    value, forward = 0.0 if count else float("nan"), 0.0
    for begin, end in evenly(count, -(-count // most)):
        whole = end - begin == count
        piece = batch if whole else tuple(column[begin:end] for column in batch)
        part = (end - begin) / count
        if end == count:
            expect()
        value += part * task.gradients(model, piece, part * share)
        if (over := task.forwarded) > began:  # else this task does not tell
            forward += over - began
        if end < count:
            began = time.monotonic()
    return value, forward
