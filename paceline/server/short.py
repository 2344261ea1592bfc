"""Plain SGD of a small model: mean and update in one pass, by one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from paceline.kernels import Kernels
from paceline.server.rules import Rule


class Short:
    """Does what torch's lerp and add do, to the bit, of vectors that are this long."""

    def __init__(self, kernels: Kernels, size: int) -> None:
        self._kernels = kernels
        self._size = size
        self._scratch = torch.empty(size)

    def descend(self, new: Tensor, old: Tensor, grad: Tensor, lr: float) -> None:
        """new ← old − η g"""
        self._kernels.descend(new.data_ptr(), old.data_ptr(), grad.data_ptr(), -lr, self._size)

    def descend_mean(
        self,
        values: Tensor,
        rows: Mapping[int, Sequence[Tensor]],
        pushes: Sequence[tuple[int, float]],
        lr: float,
    ) -> None:
        """By the mean of (row, weight): mₖ = mₖ₋₁ + (wₖ / Σᵢ₌₁..ₖ wᵢ) (gₖ − mₖ₋₁).

        A row has one gradient. All but the last step of the mean are taken in memory of its own.
        """
        grads = [(rows[row][0].data_ptr(), weight) for row, weight in pushes if weight > 0]
        if not grads:
            return
        at, size, loops = values.data_ptr(), self._size, self._kernels
        mean, total = grads[0]
        for grad, weight in grads[1:-1]:
            total += weight
            loops.blend(self._scratch.data_ptr(), mean, grad, weight / total, size)
            mean = self._scratch.data_ptr()
        if len(grads) == 1:
            loops.descend(at, at, mean, -lr, size)
        else:
            grad, weight = grads[-1]
            loops.descend_between(at, at, mean, grad, weight / (total + weight), -lr, size)


def short_way(kernels: Kernels | None, rule: Rule, size: int) -> Short | None:
    """If there is one for this rule and as many numbers."""
    plain = type(rule) is Rule and not rule.hyper.weight_decay
    return Short(kernels, size) if kernels is not None and plain and size else None
