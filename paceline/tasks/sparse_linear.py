"""A linear layer with one output for rows of which almost everything is zero."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from paceline.data.sparse.rows import SparseRows
from paceline.kernels import sparse
from paceline.kernels.arrays import Floats, Ids

NO_VALUES = np.empty(0, np.float32)
SLOTS = 1 << 12  # to find rows by, at first


class Touched(NamedTuple):
    """The rows of the weight that a batch uses, each once, their weights, and which an entry is."""

    rows: Ids
    weights: Floats
    inverse: npt.NDArray[np.int32]


class SparseLinear(nn.Module):
    """z = b + Σ wᵢxᵢ. The weight, [features, 1], is a sparse table and begins at zero."""

    sparse = True
    fetch: Callable[[Ids], None] | None = None  # has rows be here before they are used
    # Has what `SparseRows.located` tells, labels, bias and scale, finds gradients and uses them at
    # once; tells the loss, the bias's gradient, and the highest row there is.
    in_place: Callable[..., tuple[float, float, int]] | None = None

    def __init__(self, features: int, bias: float = 0.0) -> None:
        super().__init__()
        # numpy's zeros take no memory before they are touched; torch's do.
        self.weight = nn.Parameter(torch.from_numpy(np.zeros((features, 1), np.float32)))
        self.bias = nn.Parameter(torch.tensor([bias]))
        self._slots = np.full(SLOTS, sparse.FREE, np.int64)
        self._rows, self._inverse = np.empty(0, np.int64), np.empty(0, np.int32)

    def touched(self, batch: SparseRows) -> Touched:
        """What it says holds until the next batch."""
        ids = batch.ids.numpy()
        if len(ids) > len(self._inverse):
            self._rows, self._inverse = np.empty(len(ids), np.int64), np.empty(len(ids), np.int32)
        inverse = self._inverse[: len(ids)]
        while (count := sparse.localize(ids, self._slots, self._rows, inverse)) == sparse.CROWDED:
            self._slots = np.full(2 * len(self._slots), sparse.FREE, np.int64)
        rows, weights = self._rows[:count], np.empty((count, 1), np.float32)
        if self.fetch is not None:
            self.fetch(rows)
        sparse.take(self.weight.detach().numpy(), rows, weights)
        return Touched(rows, weights[:, 0], inverse)

    def forward(self, batch: SparseRows) -> Tensor:
        """z of each row. What it is of the weights only `SparseLogreg` knows, not autograd."""
        out = np.empty(len(batch), np.float32)
        _, weights, inverse = self.touched(batch)
        offsets, values = batch.offsets.numpy(), entry_values(batch)
        sparse.scores(weights, inverse, offsets, values, np.float32(self.bias.item()), out)
        return torch.from_numpy(out)


def entry_values(batch: SparseRows) -> Floats:
    return NO_VALUES if batch.values is None else batch.values.numpy()
