"""The parameters of one shard and how pushed gradients change them. Arithmetic only, no I/O.

A table keeps its parameters in one or more places (rows of `slots`). The one it wrote last holds
the current version. A gate says into which place an update goes: one place for all workers where
none of them reads while it is written, a place of its own for each worker where they do.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from paceline.server.rules import CHUNK, Rule, chunks


class Table:
    """One writer. `version` counts updates; a half-applied one is never the current version."""

    def __init__(self, slots: Tensor, rule: Rule) -> None:
        self._slots = slots
        self._rule = rule
        self._chunks = chunks(0, slots.shape[1])
        self._sum = torch.empty(min(CHUNK, max(1, slots.shape[1])))
        self.current = 0
        self.version = 0

    @property
    def size(self) -> int:
        return self._slots.shape[1]

    def slot(self, index: int) -> Tensor:
        return self._slots[index]

    def copy(self, into: int) -> None:
        """Make the current version readable in another place."""
        if into != self.current:
            self._slots[into].copy_(self._slots[self.current])

    def apply(self, grads: Sequence[tuple[Tensor, float]], lr: float, into: int) -> None:
        """One update by the mean of these gradients, weighted by the samples behind each."""
        counting = [(grad, weight) for grad, weight in grads if weight > 0]
        if counting:
            old, new = self._slots[self.current], self._slots[into]
            for at in self._chunks:
                self._rule.step(
                    new[at], old[at], self._mean(counting, at), at, lr, self.version + 1
                )
            self.current = into
        else:
            self.copy(into)
        self.version += 1

    def _mean(self, grads: list[tuple[Tensor, float]], at: slice) -> Tensor:
        if len(grads) == 1:
            return grads[0][0][at]
        total = sum(weight for _, weight in grads)
        mean = self._sum[: at.stop - at.start]
        first, weight = grads[0]
        torch.mul(first[at], weight / total, out=mean)
        for grad, weight in grads[1:]:
            mean.add_(grad[at], alpha=weight / total)
        return mean
