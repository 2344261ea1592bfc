"""A worker's own gradients, applied where the parameters lie.

They are taken straight from where backward left them: nothing is copied in between.
"""

from __future__ import annotations

import torch
from torch import Tensor

from paceline.exchange.joining import addresses
from paceline.exchange.replica import Replica
from paceline.kernels.load import Kernels
from paceline.server.descent import descent
from paceline.server.rules import Rule


class InPlace:
    """`flat` is where the replica's parameters lie."""

    def __init__(self, replica: Replica, flat: Tensor, rule: Rule, kernels: Kernels | None) -> None:
        self._replica = replica
        self._rule = rule
        self._pieces = [(p, flat[p.at]) for p in replica.pieces(0, replica.size)]
        self._descent = descent(kernels, rule, 1)
        self._lying = [(flat[s].data_ptr(), s.stop - s.start) for s in replica.spans]

    def apply(self, lr: float, version: int) -> None:
        """Those there are; then let go of them."""
        grads = [parameter.grad for parameter in self._replica.parameters]
        if self._descent is not None and (lying := addresses(grads)) is not None:
            for (at, count), source in zip(self._lying, lying, strict=True):
                self._descent.step(at, at, source, lr, count)
        else:
            flat = [None if grad is None else grad.reshape(-1) for grad in grads]
            parts = [
                (part, part, piece.of(grad), piece.at)
                for piece, part in self._pieces
                if (grad := flat[piece.parameter]) is not None
            ]
            with torch.no_grad():
                self._rule.update(parts, lr, version)
        self._replica.clear()
