"""A batch of sparse rows: entries of all rows one after another, and where each row begins."""

from __future__ import annotations

import torch
from torch import Tensor


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
        begin, end, step = which.indices(len(self))
        if step != 1:
            raise IndexError("sparse rows are cut in whole pieces, not in steps")
        offsets = self.offsets[begin : max(begin, end) + 1]
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
