"""Plain SGD by compiled loops: mean and update in one pass, to the bit what torch does in more."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import c_float

import torch
from torch import Tensor

from paceline.kernels.load import WIDE, Kernels
from paceline.server.elementwise import Rule

BEYOND_CACHE = 1 << 23  # floats of a model of which nothing is in the cache when it is next read


class Descent:
    """Of contiguous vectors on the CPU, none longer than `longest`."""

    def __init__(self, kernels: Kernels, longest: int) -> None:
        self._kernels = kernels
        self._scratch = torch.empty(longest)

    def step(self, new: Tensor, old: Tensor, grad: Tensor, lr: float) -> None:
        """new ← old − η g"""
        at = new.data_ptr(), old.data_ptr(), grad.data_ptr()
        self._kernels.descend(*at, -lr, new.numel())

    def stream(self, new: Tensor, old: Tensor, grad: Tensor, lr: float) -> None:
        """The same past the cache, which saves reading what `new` was; `new` is not `old`."""
        count, at = new.numel(), (new.data_ptr(), old.data_ptr(), grad.data_ptr())
        head = min(count, -at[0] // 4 % WIDE)  # as far as the first that lies as it must
        wide = (count - head) // WIDE * WIDE
        for begin, end, loop in (
            (0, head, self._kernels.descend),
            (head, head + wide, self._kernels.stream),
            (head + wide, count, self._kernels.descend),
        ):
            if begin < end:
                loop(*(address + 4 * begin for address in at), -lr, end - begin)

    def mean(
        self, new: Tensor, old: Tensor, grads: Sequence[tuple[Tensor, float]], lr: float
    ) -> None:
        """By the mean of some (gradient, weight): mₖ = mₖ₋₁ + (wₖ / Σᵢ₌₁..ₖ wᵢ) (gₖ − mₖ₋₁).

        All but the last step of the mean are taken in memory of its own.
        """
        if len(grads) == 1:
            self.step(new, old, grads[0][0], lr)
            return
        count, loops, scratch = new.numel(), self._kernels, self._scratch.data_ptr()
        mean, total = grads[0][0].data_ptr(), grads[0][1]
        for grad, weight in grads[1:-1]:
            total += weight
            b = grad.data_ptr()
            end, part = _from_the_nearer(mean, b, weight / total)
            loops.blend(scratch, end, mean, b, part, count)
            mean = scratch
        grad, weight = grads[-1]
        b = grad.data_ptr()
        end, part = _from_the_nearer(mean, b, weight / (total + weight))
        at = new.data_ptr(), old.data_ptr(), end, mean, b
        loops.descend_between(*at, part, -lr, count)


def _from_the_nearer(a: int, b: int, weight: float) -> tuple[int, float]:
    """From which end to go, and which part of the way: as torch's lerp does, in float32."""
    weight = c_float(weight).value
    return (a, weight) if weight < 0.5 else (b, weight - 1)


def descent(kernels: Kernels | None, rule: Rule, longest: int) -> Descent | None:
    """If there is one for this rule."""
    plain = type(rule) is Rule and not rule.hyper.weight_decay
    return Descent(kernels, longest) if kernels is not None and plain else None
