"""Logistic regression on sparse rows: click logs and texts with up to 2³¹ features.

--task sparse-logreg --data shards --data-dir FOLDER
"""

from __future__ import annotations

import math
from typing import cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from paceline.data.base import Batch, Samples
from paceline.errors import DataError, TaskError
from paceline.kernels import sparse
from paceline.kernels.arrays import sparse_of
from paceline.tasks.base import Task
from paceline.tasks.fit import features_of
from paceline.tasks.ranks import ranks
from paceline.tasks.sparse_linear import SparseLinear, entry_values

BATCH = 1000
CHUNK, CHUNKS = 1024, 64  # samples that lie side by side, and how many times so many are looked at


class SparseLogreg(Task):
    """Only weights of features that a batch has are read, exchanged and changed."""

    data_name = "clicks"
    batch = BATCH
    epochs = 1
    lr = 0.05
    optimizer = "adagrad"
    features: int | None = None  # of the model, where it is to have room for more than the data has

    def model(self) -> nn.Module:
        there = features_of("sparse-logreg", self.data())
        if self.features is not None and self.features < there:
            raise TaskError(
                f"--features {self.features}: the data has {there:,}; convert it with as many as "
                "you want."
            )
        return SparseLinear(self.features or there, bias=log_odds(self.data().train))

    def gradients(self, model: nn.Module, batch: Batch, weight: float) -> float:
        """In closed form, of the features that the batch has.

        Where the exchange lets it, they are used where they are found, and none are left.
        """
        linear, (rows, labels) = cast(SparseLinear, model), batch
        told = labels.numpy(), np.float32(linear.bias.item())
        scale = np.float32(weight / max(1, len(labels)))
        if linear.in_place is not None:
            # A sample changes rows by as much as in a batch of the task's own, in whichever it is.
            loss, tilt, highest = linear.in_place(*rows.located(), *told, np.float32(1 / BATCH))
            tilt *= BATCH * float(scale)
            if highest >= len(linear.weight):
                raise DataError(
                    f"the data has feature {highest:,}, and the model {len(linear.weight):,} of "
                    "them: a shard is damaged; convert the data again."
                )
        else:
            offsets, values = rows.offsets.numpy(), entry_values(rows)
            there, weights, inverse = linear.touched(rows)
            found = np.zeros(len(there), np.float32)
            loss, tilt = sparse.logistic(weights, inverse, offsets, values, *told, scale, found)
            gradient = sparse_of(there.copy(), found[:, None], linear.weight.shape)
            _add(linear.weight, gradient if linear.sparse else gradient.to_dense())
        _add(linear.bias, torch.tensor([tilt], dtype=torch.float32))
        return float(loss) / max(1, len(labels))

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        rows, labels = batch
        return F.binary_cross_entropy_with_logits(model(rows), labels)

    def metrics(self, model: nn.Module, batch: Batch) -> dict[str, Tensor | float]:
        rows, labels = batch
        scores = model(rows)
        return {
            "loss": F.binary_cross_entropy_with_logits(scores, labels),
            "accuracy": ((scores > 0) == (labels > 0)).float().mean(),
            "ranks": ranks(scores, labels),
        }


def log_odds(samples: Samples) -> float:
    """Of the labels, from samples of everywhere: the bias with which nothing else is known.

    Begun at zero, it would have to get there in small steps, and every weight would stand in for
    it meanwhile.
    """
    count = len(samples)
    begins = np.unique(np.linspace(0, max(0, count - CHUNK), CHUNKS).astype(np.int64))
    rows = np.unique(begins[:, None] + np.arange(CHUNK))
    rows = rows[rows < count]
    labels = samples.batch(rows)[1]
    ones, all_ = float((labels > 0).sum()), len(rows)
    return math.log((ones + 0.5) / (all_ - ones + 0.5))


def _add(parameter: nn.Parameter, gradient: Tensor) -> None:
    before = parameter.grad
    if before is None:
        parameter.grad = gradient
    elif not gradient.is_sparse:
        parameter.grad = before + gradient
    else:  # rows are in no order, so they are put side by side, for whoever takes them to add up
        parameter.grad = torch.sparse_coo_tensor(
            torch.cat((before._indices(), gradient._indices()), 1),
            torch.cat((before._values(), gradient._values())),
            gradient.shape,
            check_invariants=False,
            is_coalesced=False,
        )
