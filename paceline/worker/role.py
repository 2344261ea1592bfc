"""The worker role: build the task, meet the others, train, score, part.

    build ─ready─► supervisor ─roster─► start ─► train ─trained─► supervisor ─part─► close ─► score
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from paceline.data.prefetch import Prefetch
from paceline.data.sampler import Lot, Order, leased, rounds, slices
from paceline.exchange.make import make_exchange
from paceline.exchange.replica import Replica
from paceline.measure.clock import Clock
from paceline.spec import RunSpec
from paceline.store.steps import StepWriter
from paceline.worker.task import task_for
from paceline.transport.control import Control, Message
from paceline.types import Facts, record
from paceline.worker.device import pick_device
from paceline.worker.leases import leases
from paceline.worker.loop import train
from paceline.worker.meeting import Meeting, post_from
from paceline.worker.reporter import Reporter
from paceline.worker.saving import save_parameters, write_snapshot
from paceline.worker.scoring import score, to_device

ROSTER_SECONDS = 120.0
PARTING_SECONDS = 24 * 3600.0  # the slowest worker may be far behind; its death ends the wait


def worker(assignment: dict[str, Any], fds: dict[str, int], control: Control) -> None:
    spec = RunSpec(**assignment["spec"])
    index: int = assignment["index"]
    clock = Clock(assignment["t0"])

    task = task_for(spec, fds)
    torch.manual_seed(spec.seed)
    device = pick_device(spec.device, index)
    data = task.data()
    replica = Replica(task.model().to(device))
    meeting = Meeting(spec, index)
    facts = Facts(
        parameters=replica.size,
        samples=len(data.train),
        batch=task.batch,
        epochs=task.epochs,
        lr=task.lr,
        optimizer=task.optimizer,
        rendezvous=meeting.address,
    )
    control.send("ready", device=str(device), facts=record(facts))
    roster = control.wait("roster", seconds=ROSTER_SECONDS)
    spec = RunSpec(**roster["spec"])
    assert spec.batch is not None
    assert spec.lr is not None

    exchange = make_exchange(spec.kind, post_from(roster, spec, index, fds, replica.size))
    exchange.start(replica)

    # Workers that hold the same parameters score a part of the test samples each.
    part, parts = (index, spec.workers) if spec.kind.samples == "slices" else (0, 1)
    if not spec.kind.shared:
        part, parts = 0, 1

    def tell_score(step: int, epoch: int, part: int, parts: int, final: bool) -> None:
        sums, count = score(task, replica.model, data.test, device, part, parts)
        control.send(
            "score", time=clock.now(), step=step, epoch=epoch, parts=parts,
            final=final, sums=sums, count=count,
        )  # fmt: skip

    def at_epoch_end(step: int, epoch: int) -> None:
        scoring = spec.evaluate == "epoch" and not spec.evaluator
        if scoring and (index == 0 or parts > 1):
            tell_score(step, epoch, part, parts, final=False)

    def on_message(message: Message) -> None:
        write_snapshot(fds["snapshot"], replica)
        control.send("snapshot", step=reporter.taken, epoch=reporter.epoch)

    order = Order(len(data.train), spec.seed)
    lots: Iterator[Lot]
    if spec.kind.samples == "leases":
        lots = leased(order, spec.batch, leases(control))
    else:
        lots = slices(order, spec.batch, index, spec.workers, spec.epochs, spec.steps)
    steps = spec.steps or rounds(len(data.train), spec.batch, spec.workers) * (spec.epochs or 1)

    writer = StepWriter(Path(assignment["folder"]) / "steps" / f"{assignment['role']}.steps")
    reporter = Reporter(control, writer, clock, exchange, steps, at_epoch_end, on_message)
    with contextlib.closing(writer):
        with contextlib.closing(Prefetch(data.train, lots)) as fetched:
            batches = ((lot, to_device(batch, device)) for lot, batch in fetched)
            train(task, replica, batches, exchange, spec.lr, reporter)
        exchange.finish()
        reporter.tell()
        control.send("trained")
        control.wait("part", seconds=PARTING_SECONDS)
        exchange.close()
    if spec.evaluate != "never":
        if spec.kind.shared:
            part, parts = index, spec.workers
        tell_score(reporter.taken, reporter.epoch, part, parts, final=True)
    if index == 0:
        save_parameters(Path(assignment["folder"]) / "final.pt", replica.model)
    meeting.close()
    control.send(
        "done",
        steps=reporter.taken,
        samples=reporter.samples,
        sent=exchange.sent,
        received=exchange.received,
    )
