"""Scoring parameters on the test samples, whole or one worker's part of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

from paceline.data.base import Samples
from paceline.tasks.base import Task

BATCH = 500


def score(
    task: Task, model: nn.Module, samples: Samples, device: torch.device, part: int, parts: int
) -> tuple[dict[str, float], int]:
    """Each metric summed over part `part` of `parts`, and how many samples that was.

    Sums, not means: parts of different workers are added up exactly.
    """
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
