"""Gradients of some rows of a sparse table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from paceline.kernels.arrays import Floats, Ids


class RowGradient(NamedTuple):
    """Of some rows, each once."""

    rows: Ids
    values: Floats  # [rows, columns]


def nothing(columns: int) -> RowGradient:
    return RowGradient(np.empty(0, np.int64), np.empty((0, columns), np.float32))


def merged(gradients: Sequence[tuple[RowGradient, float]]) -> RowGradient:
    """Σ wᵢgᵢ / Σ wᵢ of several, weighted by samples; a row that one of them lacks is 0 there."""
    if len(gradients) == 1:
        return gradients[0][0]
    total = sum(weight for _, weight in gradients)
    rows = np.unique(np.concatenate([gradient.rows for gradient, _ in gradients]))
    columns = gradients[0][0].values.shape[1]
    values = np.zeros((len(rows), columns), np.float32)
    for gradient, weight in gradients:
        at = np.searchsorted(rows, gradient.rows)
        values[at] += np.float32(weight / total) * gradient.values
    return RowGradient(rows, values)
