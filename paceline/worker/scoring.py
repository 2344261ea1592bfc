"""Scoring parameters on the test samples, whole or one worker's part of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

from paceline.data.base import Samples
from paceline.measure.clock import Clock
from paceline.spec import RunSpec
from paceline.store.spans import SpanWriter
from paceline.tasks.base import Task
from paceline.transport.control import Control
from paceline.transport.slate import SCORE, Slate

BATCH = 500

Share = tuple[int, int, int]  # begin and end, of how many
ALL: Share = (0, 1, 1)


class Scorer:
    """A role's scoring: what it scores, when, and telling the supervisor."""

    def __init__(
        self,
        task: Task,
        model: nn.Module,
        test: Samples,
        control: Control,
        clock: Clock,
        slate: Slate,
        spans: SpanWriter,
    ) -> None:
        self._task = task
        self._model = model
        self._test = test
        self._control = control
        self._clock = clock
        self._slate = slate
        self._spans = spans
        self.samples = 0

    def tell(self, step: int, epoch: int, *, share: Share = ALL, final: bool = False) -> None:
        """Score a share of the test samples; sums, not means, so that parts add up exactly."""
        total = len(self._test)
        begin, end = (total * at // share[2] for at in share[:2])
        if begin == end and (total or begin != share[0]):
            return  # nothing to add
        before = self._slate.at(SCORE)
        with self._spans.during("evaluate"):
            sums, count = score(self._task, self._model, self._test, begin, end)
        self._slate.back(before)
        self.samples += count
        self._control.send(
            "score",
            time=self._clock.now(),
            step=step,
            epoch=epoch,
            final=final,
            sums=sums,
            count=count,
            total=total,
        )


class WorkerScorer(Scorer):
    """Workers that hold the same parameters score a part of the test samples each.

    Where they never do before the end, the one that leads scores the epochs.
    """

    def set_post(self, spec: RunSpec, leads: bool) -> None:
        self._leads = leads
        self._shared = spec.kind.shared
        self._in_step = in_step(spec)
        self._each_epoch = spec.evaluate == "epoch" and not spec.evaluator
        self._at_end = spec.evaluate != "never"

    def lead(self) -> None:
        self._leads = True

    def at_epoch_end(self, step: int, epoch: int, share: Share) -> None:
        """`share` is what this worker had of the epoch's last round: together they score all."""
        if self._each_epoch and (self._in_step or self._leads):
            self.tell(step, epoch, share=share if self._in_step else ALL)

    def at_end(self, step: int, epoch: int, place: int, of: int) -> None:
        """As the one in this place of so many that were there at the end."""
        if self._at_end:
            share = (place, place + 1, of) if self._shared else ALL
            self.tell(step, epoch, share=share, final=True)


def in_step(spec: RunSpec) -> bool:
    """Whether workers have the same parameters at the end of each epoch, not only of the run."""
    return (
        spec.kind.shared
        and spec.kind.samples == "slices"
        and spec.strategy != "local-sgd"
        and not spec.backup
    )


def score(
    task: Task, model: nn.Module, samples: Samples, start: int, stop: int
) -> tuple[dict[str, float | list[float]], int]:
    """Each metric summed over these samples, and how many that was."""
    device = next(model.parameters()).device
    sums: dict[str, Any] = {}
    training = model.training
    model.eval()
    with torch.inference_mode():
        for begin in range(start, stop, BATCH):
            rows = np.arange(begin, min(begin + BATCH, stop))
            batch = to_device(samples.batch(rows), device)
            for name, value in task.metrics(model, batch).items():
                sums[name] = sums.get(name, 0.0) + _exact(value) * len(rows)
    model.train(training)
    return {name: _plain(value) for name, value in sums.items()}, stop - start


def _exact(value: Any) -> Any:
    """In double precision, as sums over many batches are."""
    return value.double() if isinstance(value, torch.Tensor) else float(value)


def _plain(value: Any) -> float | list[float]:
    """A number, or where a metric has many, all of them."""
    if isinstance(value, torch.Tensor) and value.numel() > 1:
        return value.tolist()
    return float(value)


def to_device(batch: Any, device: torch.device) -> Any:
    """A batch where the model is; on the CPU it is there already."""
    if device.type == "cpu":
        return batch
    return tuple(column.to(device, non_blocking=True) for column in batch)
