"""Plain SGD by compiled loops: mean and update in one pass, to the bit what torch does in more.

And a copy past the cache, of what is about to be applied elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ctypes import c_float, memmove

import torch

from paceline.kernels.load import WIDE, Kernels
from paceline.server.elementwise import Rule

BEYOND_CACHE = 1 << 23  # floats of a model of which nothing is in the cache when it is next read


Way = list[tuple[int, int, int, float]]  # end + w (b − a): its end, a, b and w; without b its end


class Descent:
    """Of contiguous vectors on the CPU, none longer than `longest`.

    They are told by their addresses: those of what stays where it is are known beforehand, and to
    ask torch for one costs as much as a small vector's arithmetic.
    """

    def __init__(self, kernels: Kernels, longest: int) -> None:
        self._kernels = kernels
        self._scratch = torch.empty(longest)
        self._at = self._scratch.data_ptr()

    def step(self, new: int, old: int, grad: int, lr: float, count: int) -> None:
        """new ← old − η g"""
        self._kernels.descend(new, old, grad, -lr, count)

    def stream(self, new: int, old: int, grad: int, lr: float, count: int) -> None:
        """The same past the cache, which saves reading what `new` was; `new` is not `old`."""
        for begin, size, wide in _by_lines(new, count):
            loop = self._kernels.stream if wide else self._kernels.descend
            loop(new + 4 * begin, old + 4 * begin, grad + 4 * begin, -lr, size)

    def way(self, grads: Sequence[tuple[int, float]]) -> Way:
        """How to come by the mean of some (gradient, weight), which is worth finding once.

            mₖ = mₖ₋₁ + (wₖ / Σᵢ₌₁..ₖ wᵢ) (gₖ − mₖ₋₁)

        All but the last step of it are taken in memory of its own.
        """
        (mean, total), found = grads[0], []
        for grad, weight in grads[1:]:
            total += weight
            end, part = _from_the_nearer(mean, grad, weight / total)
            found.append((end, mean, grad, part))
            mean = self._at
        return found or [(mean, 0, 0, 0.0)]

    def mean(self, new: int, old: int, way: Way, lr: float, count: int) -> None:
        """new ← old − η m"""
        for step in way[:-1]:
            self._kernels.blend(self._at, *step, count)
        end, a, b, part = way[-1]
        if b:
            self._kernels.descend_between(new, old, end, a, b, part, -lr, count)
        else:
            self.step(new, old, end, lr, count)


def _from_the_nearer(a: int, b: int, weight: float) -> tuple[int, float]:
    """From which end to go, and which part of the way: as torch's lerp does, in float32."""
    weight = c_float(weight).value
    return (a, weight) if weight < 0.5 else (b, weight - 1)


def pour(kernels: Kernels, new: int, old: int, count: int) -> None:
    """Copy numbers past the cache: what is large and read by another core does not stay in it."""
    for begin, size, wide in _by_lines(new, count):
        if wide:
            kernels.pour(new + 4 * begin, old + 4 * begin, size)
        else:
            memmove(new + 4 * begin, old + 4 * begin, 4 * size)


def _by_lines(new: int, count: int) -> Iterator[tuple[int, int, bool]]:
    """Numbers up to where a line begins, whole lines, and the rest: where each begins, how many
    there are, and whether they are whole lines."""
    head = min(count, -new // 4 % WIDE)
    wide = (count - head) // WIDE * WIDE
    for begin, end in ((0, head), (head, head + wide), (head + wide, count)):
        if begin < end:
            yield begin, end - begin, begin == head and wide > 0


def descent(kernels: Kernels | None, rule: Rule, longest: int) -> Descent | None:
    """If there is one for this rule."""
    plain = type(rule) is Rule and not rule.hyper.weight_decay
    return Descent(kernels, longest) if kernels is not None and plain else None
