"""The evaluator role: scores the shared parameters beside training; no worker stops for it."""

from __future__ import annotations

import contextlib
import time
from typing import Any

import torch

from paceline.exchange.replica import Replica
from paceline.measure.clock import Clock
from paceline.measure.own import own
from paceline.spec import RunSpec
from paceline.store.spans import SpanWriter
from paceline.transport.control import Control
from paceline.transport.slate import SNAPSHOT, Slate
from paceline.types import PAUSES, Progress, record
from paceline.worker.device import gpu_of, pick_device
from paceline.worker.saving import read_snapshot
from paceline.worker.scoring import Scorer
from paceline.worker.task import model_for, task_for

REST = 0.2  # seconds between scorings, so that a small model is not copied all the time
PATIENCE = 24 * 3600.0


def evaluator(
    assignment: dict[str, Any], fds: dict[str, int], control: Control, slate: Slate
) -> None:
    clock = Clock(assignment["t0"])
    with contextlib.closing(SpanWriter.of(assignment, PAUSES, clock)) as spans:
        _evaluate(assignment, fds, control, slate, clock, spans)


def _evaluate(
    assignment: dict[str, Any],
    fds: dict[str, int],
    control: Control,
    slate: Slate,
    clock: Clock,
    spans: SpanWriter,
) -> None:
    spec = RunSpec(**assignment["spec"])
    task = task_for(spec, fds)
    torch.manual_seed(spec.seed)
    device = pick_device(spec.device, 0)
    test = task.data().test  # in the worker's order, data then model: both may draw on the seed
    replica = Replica(model_for(task, spec).to(device))
    control.send("ready", device=str(device), gpu=gpu_of(device))
    scorer = Scorer(task, replica.model, test, control, clock, slate, spans)
    slate.at(SNAPSHOT)
    scored = -1
    while True:
        control.send("snapshot")
        told = control.wait("snapshot", "stop", seconds=PATIENCE)
        if told["kind"] == "stop":
            break
        if told["step"] != scored:
            scored = told["step"]
            read_snapshot(fds["snapshot"], replica)
            scorer.tell(scored, told["epoch"])
        progress = Progress(step=scored, samples=scorer.samples, own=own())
        control.send("progress", **record(progress))
        time.sleep(REST)
    control.send("done", samples=scorer.samples)
