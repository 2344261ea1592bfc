"""Copies for checkpoints, in memory that can be used again.

Of a large tensor the copy is the smaller part of the cost: three quarters are pages that nobody has
touched yet. Where checkpoints come often the memory of the last is kept for the next.
"""

from __future__ import annotations

import torch
from torch import Tensor


class Copies:
    """`kept` says whether memory stays; between two checkpoints it is free otherwise."""

    def __init__(self, kept: bool = False) -> None:
        self.kept = kept
        self._before: dict[str, Tensor] = {}
        self._now: dict[str, Tensor] = {}

    def begin(self) -> None:
        """Another checkpoint: what was copied for the last is not needed any more."""
        self._before, self._now = self._now, {}

    def __call__(self, name: str, tensor: Tensor) -> Tensor:
        """A copy on the host; it holds until the next checkpoint begins."""
        place = self._before.pop(name, None)
        if place is None or place.shape != tensor.shape:
            place = torch.empty(tensor.shape, dtype=tensor.dtype)
        if self.kept:
            self._now[name] = place
        return place.copy_(tensor.detach())
