"""Scoring parameters on the test samples, whole or one worker's part of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

from paceline.data.base import Samples
from paceline.measure.clock import Clock
from paceline.spec import RunSpec
from paceline.tasks.base import Task
from paceline.transport.control import Control

BATCH = 500


class Scorer:
    """A role's scoring: what it scores, when, and telling the supervisor."""

    def __init__(
        self, task: Task, model: nn.Module, test: Samples, control: Control, clock: Clock
    ) -> None:
        self._task = task
        self._model = model
        self._test = test
        self._control = control
        self._clock = clock
        self.samples = 0

    def tell(self, step: int, epoch: int, *, part: int, parts: int, final: bool) -> None:
        """Score part `part` of `parts`; sums, not means, so that parts add up exactly."""
        sums, count = score(self._task, self._model, self._test, part, parts)
        self.samples += count
        self._control.send(
            "score",
            time=self._clock.now(),
            step=step,
            epoch=epoch,
            parts=parts,
            final=final,
            sums=sums,
            count=count,
        )


class WorkerScorer(Scorer):
    """Workers that hold the same parameters score a part of the test samples each."""

    def set_post(self, spec: RunSpec, index: int) -> None:
        self._index = index
        self._workers = spec.workers
        self._shared = spec.kind.shared
        self._in_step = in_step(spec)
        self._each_epoch = spec.evaluate == "epoch" and not spec.evaluator
        self._at_end = spec.evaluate != "never"

    def at_epoch_end(self, step: int, epoch: int) -> None:
        if self._each_epoch and (self._in_step or self._index == 0):
            self._tell(step, epoch, together=self._in_step, final=False)

    def at_end(self, step: int, epoch: int) -> None:
        if self._at_end:
            self._tell(step, epoch, together=self._shared, final=True)

    def _tell(self, step: int, epoch: int, *, together: bool, final: bool) -> None:
        part, parts = (self._index, self._workers) if together else (0, 1)
        self.tell(step, epoch, part=part, parts=parts, final=final)


def in_step(spec: RunSpec) -> bool:
    """Whether workers have the same parameters at the end of each epoch, not only of the run."""
    return (
        spec.kind.shared
        and spec.kind.samples == "slices"
        and spec.strategy != "local-sgd"
        and not spec.backup
    )


def score(
    task: Task, model: nn.Module, samples: Samples, part: int, parts: int
) -> tuple[dict[str, float], int]:
    """Each metric summed over part `part` of `parts`, and how many samples that was."""
    device = next(model.parameters()).device
    start, stop = len(samples) * part // parts, len(samples) * (part + 1) // parts
    sums: dict[str, float] = {}
    training = model.training
    model.eval()
    with torch.inference_mode():
        for begin in range(start, stop, BATCH):
            rows = np.arange(begin, min(begin + BATCH, stop))
            batch = to_device(samples.batch(rows), device)
            for name, value in task.metrics(model, batch).items():
                sums[name] = sums.get(name, 0.0) + float(value) * len(rows)
    model.train(training)
    return sums, stop - start


def to_device(batch: Any, device: torch.device) -> Any:
    """A batch where the model is; on the CPU it is there already."""
    if device.type == "cpu":
        return batch
    return tuple(column.to(device, non_blocking=True) for column in batch)
