"""The worker role: build the task, meet the others, train, score, part.

build ─ready─► supervisor ─roster─► start ─► train ─trained─► supervisor ─part─► close ─► score
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from paceline.data.arrays import Arrays
from paceline.data.base import Samples
from paceline.data.sampler import Lot, leased, order, rounds, slices
from paceline.exchange.base import Among, Exchange, Post
from paceline.exchange.layout import in_a_group
from paceline.exchange.make import make_exchange
from paceline.exchange.replica import Replica
from paceline.kernels.load import worthwhile
from paceline.measure.clock import Clock
from paceline.measure.malloc import give_back
from paceline.spec import RunSpec
from paceline.store.spans import SpanWriter
from paceline.store.steps import StepWriter
from paceline.tasks.base import Task
from paceline.transport.control import Control, Message
from paceline.transport.slate import (
    COMPILE,
    EXCHANGE,
    MEET,
    READY,
    RESTORE,
    TRAINED,
    WRITE,
    Slate,
)
from paceline.types import PAUSES, Facts, record
from paceline.worker.batches import Batches
from paceline.worker.device import gpu_of, pick_device
from paceline.worker.harm import Harm
from paceline.worker.keeping import Keeper, Position, restore
from paceline.worker.leases import leases
from paceline.worker.loop import train
from paceline.worker.meeting import post_from
from paceline.worker.notice import Notice
from paceline.worker.profiling import Profile
from paceline.worker.recipe import Recipe
from paceline.worker.reporter import Reporter
from paceline.worker.saving import save_parameters, write_snapshot
from paceline.worker.scoring import WorkerScorer, to_device
from paceline.worker.task import model_for, task_for

ROSTER_SECONDS = 120.0
FUSED = ("AVX2", "AVX512")  # what torch uses of a processor that multiplies and adds in one
PARTING_SECONDS = 24 * 3600.0  # the slowest worker may be far behind; its death ends the wait


def worker(assignment: dict[str, Any], fds: dict[str, int], control: Control, slate: Slate) -> None:
    clock, spec = Clock(assignment["t0"]), RunSpec(**assignment["spec"])
    with (
        contextlib.closing(SpanWriter.of(assignment, PAUSES, clock)) as spans,
        contextlib.closing(
            Profile(spec, assignment["role"], Path(assignment["folder"]))
        ) as profile,
    ):
        _work(assignment, fds, control, slate, clock, spans, profile)


def _work(
    assignment: dict[str, Any],
    fds: dict[str, int],
    control: Control,
    slate: Slate,
    clock: Clock,
    spans: SpanWriter,
    profile: Profile,
) -> None:
    notice = Notice()
    spec = RunSpec(**assignment["spec"])
    index, life = int(assignment["index"]), int(assignment["life"])
    folder = Path(assignment["folder"])

    task = task_for(spec, fds)
    torch.manual_seed(spec.seed)
    device = pick_device(spec.device, index)
    data = task.data()
    replica = Replica(model_for(task, spec).to(device))
    give_back()
    facts = _facts(task, replica, len(data.train))
    profile.graph(task, first=index == 0 and not life)
    roster = ready(control, slate, device, facts)
    spec = RunSpec(**roster["spec"])

    steps = _steps(spec, len(data.train))
    post = post_from(roster, spec, index, fds, replica, control, slate, life=life)
    exchange = make_exchange(
        spec, _with_loops(post, replica, data.train, steps), len(replica.tables)
    )
    position = _start(exchange, replica, spec, len(data.train), roster["checkpoint"], slate)
    keeper = Keeper(control, replica, exchange, spec.checkpoint_every, slate)
    if not life and index in post.crew:  # others wait for whoever comes later
        keeper.prepare(Among(post.crew.index(index), len(post.crew)))
    scorer = WorkerScorer(task, replica.model, data.test, control, clock, slate, spans)
    scorer.set_post(spec, roster["leads"])
    if life:
        control.send("started", round=exchange.round if spec.kind.samples == "slices" else None)
    lots = _lots(spec, post, data.train, control, exchange)

    def give_snapshot(_: Message) -> None:
        write_snapshot(fds["snapshot"], replica)
        control.send("snapshot", step=reporter.taken, epoch=reporter.epoch)

    path = folder / "steps" / f"{assignment['role']}.steps"
    # What was done after the checkpoint is done again.
    after = position.taken if roster["checkpoint"] or spec.kind.alone else None
    with contextlib.closing(StepWriter(path, after)) as writer:
        reporter = Reporter(
            control=control,
            writer=writer,
            clock=clock,
            exchange=exchange,
            harm=Harm(control, folder),
            slate=slate,
            steps=steps,
            at_epoch_end=scorer.at_epoch_end,
            on_snapshot=spans.timed("snapshot", give_snapshot),
            on_keep=spans.timed("checkpoint", keeper.keep),
            position=position,
            notice=notice,
            profile=profile if spec.profile_steps else None,
            on_lead=scorer.lead,
        )
        place = None if device.type == "cpu" else partial(to_device, device=device)
        with contextlib.closing(Batches(data.train, lots, slate, place)) as batches:
            recipe = Recipe.of(spec, facts)
            # A fast worker's share is larger; in parts it would be slower again.
            most = (spec.batch or task.batch) * (1 + spec.balance)
            train(task, replica, batches, exchange, recipe, most, reporter, slate)
        reporter.tell()
        among = None if reporter.parting else part(exchange, reporter, control, slate)
    if among is None:
        keeper.close()
        leave(exchange, reporter, control)
        return
    scorer.at_end(reporter.taken, reporter.epoch, *among)
    if among.first:
        _save(exchange, replica, folder, slate)
    keeper.close()
    done(exchange, reporter, control)
    stand_by(spec, exchange, control, slate)


def ready(control: Control, slate: Slate, device: torch.device, facts: Facts) -> Message:
    """Say so, and wait to be told where the others are."""
    slate.at(READY)
    control.send("ready", device=str(device), gpu=gpu_of(device), facts=record(facts))
    roster = control.wait("roster", seconds=ROSTER_SECONDS)
    slate.at(MEET)
    return roster


def _save(exchange: Exchange, replica: Replica, folder: Path, slate: Slate) -> None:
    slate.at(WRITE)
    exchange.complete()
    save_parameters(folder / "final.pt", replica)


def _facts(task: Task, replica: Replica, samples: int) -> Facts:
    return Facts(
        parameters=replica.size,
        layers=replica.layers,
        tables=tuple(table.size for table in replica.tables),
        one_by_one=any(table.together for table in replica.tables),
        samples=samples,
        batch=task.batch,
        epochs=task.epochs,
        lr=task.lr,
        optimizer=task.optimizer,
        data=task.data_name if type(task).data is Task.data else "",
    )


def _lots(
    spec: RunSpec, post: Post, samples: Samples, control: Control, exchange: Exchange
) -> Iterator[Lot]:
    if exchange.over:
        return iter(())
    dealt, step = order(samples, spec.seed), spec.step_samples
    if spec.kind.samples == "leases":
        return leased(dealt, step, leases(control, lambda: exchange.taken))
    how_many = spec.workers, spec.epochs, spec.steps
    lots = slices(dealt, step, post.index, *how_many, post.crew)
    lots.go_on(exchange.round, exchange.share)
    return lots


def _with_loops(post: Post, replica: Replica, samples: Samples, steps: int) -> Post:
    """With compiled loops, where they are worth it and torch rounds as they do, once; the samples
    then have them too."""
    fused = torch.backends.cpu.get_cpu_capability() in FUSED
    if not (replica.on_host and fused):
        return post
    before = post.slate.at(COMPILE)
    kernels = worthwhile(replica.size, steps)
    post.slate.back(before)
    if kernels is not None and isinstance(samples, Arrays):
        samples.quicken(kernels)
    return replace(post, kernels=kernels)


def _start(
    exchange: Exchange,
    replica: Replica,
    spec: RunSpec,
    samples: int,
    kept: Message | None,
    slate: Slate,
) -> Position:
    """Meet the others: where this worker goes on. Without a checkpoint not at 0 in a later life."""
    exchange.start(replica)
    give_back()
    if kept:
        slate.at(RESTORE)
        return restore(kept, replica, exchange)
    epoch = exchange.round // rounds(samples, spec.step_samples * spec.workers)
    return Position(round=exchange.round, taken=exchange.taken, epoch=epoch)


def _steps(spec: RunSpec, samples: int) -> int:
    """How many steps this worker will take, or about how many where it leases its samples."""
    return spec.steps or rounds(samples, spec.step_samples * spec.workers) * (spec.epochs or 1)


def part(exchange: Exchange, reporter: Reporter, control: Control, slate: Slate) -> Among:
    """Finish, wait until all have, and take the final shared parameters."""
    slate.at(EXCHANGE)
    exchange.finish()
    reporter.tell()
    reporter.keep()
    slate.at(TRAINED)
    control.send("trained")
    if reporter.leaving:
        exchange.regroup()
    words = ("keep", "regroup", "part")
    while (said := control.wait(*words, seconds=PARTING_SECONDS))["kind"] != "part":
        if said["kind"] == "keep":
            reporter.wish(said)
            reporter.keep()
        elif said["generation"] == exchange.generation:
            exchange.regroup()
    slate.at(EXCHANGE)
    exchange.close()
    return Among(said["place"], said["of"])


def leave(exchange: Exchange, reporter: Reporter, control: Control) -> None:
    """Go, while the others go on."""
    exchange.leave()
    control.send(
        "left", done=exchange.taken, round=reporter.round, report=_report(exchange, reporter)
    )


def stand_by(spec: RunSpec, exchange: Exchange, control: Control, slate: Slate) -> None:
    """In a group, until all are done: one that dies before that gets its parameters from others."""
    slate.at(TRAINED)
    if not in_a_group(spec):
        return
    while (said := control.wait("end", "regroup", seconds=PARTING_SECONDS))["kind"] != "end":
        if said["generation"] == exchange.generation:
            exchange.regroup()


def done(exchange: Exchange, reporter: Reporter, control: Control) -> None:
    """A worker's last words."""
    control.send("done", **_report(exchange, reporter))


def _report(exchange: Exchange, reporter: Reporter) -> dict[str, Any]:
    return {
        "steps": reporter.taken,
        "samples": reporter.samples,
        "dropped": reporter.dropped,
        "coding": exchange.coding(),
        "sent": exchange.sent,
        "received": exchange.received,
        "traffic": exchange.traffic(),
        "hosted": [record(server) for server in exchange.hosted()],
    }
