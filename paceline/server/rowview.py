"""Where the rows of a sparse table are, and which of them may be other than zero."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from paceline.kernels import sparse
from paceline.kernels.arrays import Floats, Ids
from paceline.server.striping import Size
from paceline.transport.memory import Stretch


class RowView(NamedTuple):
    """One table, as numpy sees it. With `memory` a row's weights and state lie side by side."""

    weights: Floats  # [rows, columns]
    state: Floats  # [rows, states, columns]
    memory: Stretch | None = None

    @classmethod
    def together(cls, memory: Stretch, size: Size, states: int) -> RowView:
        whole = memory.floats.view(size.rows, 1 + states, size.columns).numpy()
        return cls(whole[:, 0], whole[:, 1:], memory)

    @property
    def whole(self) -> Floats:
        """[rows, all that a row has], where that lies side by side."""
        assert self.memory is not None
        floats: Floats = self.memory.floats.numpy()
        return floats.reshape(len(self.weights), -1)

    def spans(self, first: int = 0) -> Iterator[tuple[int, int]]:
        """Ranges of rows, from the first on, outside of which all are zero."""
        rows = len(self.weights)
        if self.memory is None or not rows:
            if first < rows:
                yield first, rows
            return
        width = len(self.memory.floats) // rows
        for begin, end in self.memory.used():
            span = max(first, begin // width), min(rows, -(-end // width))
            if span[0] < span[1]:
                yield span
                first = span[1]

    def used(self, begin: int, end: int, stripe: int = 0, stripes: int = 1) -> Ids:
        """The rows of a stripe in a range that are not all zero."""
        found: Ids
        if self.memory is None:
            found = sparse.used(self.weights, self.state, begin, end, stripe, stripes)
        else:
            words = self.memory.floats.numpy().view(np.uint32)
            width = len(words) // len(self.weights)
            found = sparse.used_together(words, width, begin, end, stripe, stripes)
        return found
