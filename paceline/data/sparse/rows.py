"""A batch of sparse rows: entries of all rows one after another, and where each row begins."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from paceline.data.base import Array

ENTRY_BYTES = 4
NOWHERE = np.empty(0, np.int64)


class Located(NamedTuple):
    """Where the entries of each row are in memory, and how many there are: for compiled loops,
    which need not have them in one place."""

    ids: Array  # addresses
    values: Array  # addresses; none where all are one
    counts: Array


class SparseRows:
    """Row i has entries offsets[i] to offsets[i + 1]: `ids`, and `values` unless all are one.

    As a column of a batch it has a length and can be cut. `nn.EmbeddingBag` takes it apart as
    `bag(rows.ids, rows.offsets[:-1])`, or with `per_sample_weights=rows.values`.
    """

    __slots__ = ("ids", "offsets", "values")

    def __init__(self, ids: Tensor, offsets: Tensor, values: Tensor | None = None) -> None:
        self.ids = ids
        self.offsets = offsets
        self.values = values

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, which: slice) -> SparseRows:
        begin, end = whole(which, len(self))
        offsets = self.offsets[begin : end + 1]
        first, last = int(offsets[0]), int(offsets[-1])
        values = None if self.values is None else self.values[first:last]
        return SparseRows(self.ids[first:last], offsets - first, values)

    def to(self, device: torch.device, non_blocking: bool = False) -> SparseRows:
        values = self.values
        return SparseRows(
            self.ids.to(device, non_blocking=non_blocking),
            self.offsets.to(device, non_blocking=non_blocking),
            None if values is None else values.to(device, non_blocking=non_blocking),
        )

    def located(self) -> Located:
        """Of rows in the host's memory, as long as somebody holds them."""
        for column, kind in ((self.ids, torch.int32), (self.values, torch.float32)):
            if column is not None and (column.dtype != kind or not column.is_contiguous()):
                raise TypeError(f"entries of sparse rows are {kind}, side by side")
        offsets = self.offsets.numpy()
        begins = ENTRY_BYTES * offsets[:-1]
        values = NOWHERE if self.values is None else begins + self.values.data_ptr()
        return Located(begins + self.ids.data_ptr(), values, np.diff(offsets))


def whole(which: slice, length: int) -> tuple[int, int]:
    """Where a piece begins and ends."""
    begin, end, step = which.indices(length)
    if step != 1:
        raise IndexError("sparse rows are cut in whole pieces, not in steps")
    return begin, max(begin, end)
