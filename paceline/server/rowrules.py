"""Update rules for rows of sparse tables: those a gradient touches change, and nothing else does.

    sgd, adagrad    as of dense parameters
    adam            torch's SparseAdam: averages of rows that are not touched stand still
    ftrl            as of dense parameters

For t updates of a table so far, Adam's corrections count all of them, not a row's own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from paceline.errors import RequestError
from paceline.kernels import rowrules
from paceline.kernels.arrays import Floats, Ids
from paceline.server.catalog import ROWWISE, STATES
from paceline.server.popular import Popular, descend

if TYPE_CHECKING:
    from paceline.server.elementwise import Hyper

CODES = {
    "sgd": rowrules.SGD,
    "adagrad": rowrules.ADAGRAD,
    "ftrl": rowrules.FTRL,
    "adam": rowrules.ADAM,
}


class RowRule:
    """One rule; what its loops in `kernels/rowrules.py` are told of it."""

    def __init__(self, name: str, hyper: Hyper) -> None:
        if name not in ROWWISE:
            known = ", ".join(sorted(ROWWISE))
            raise RequestError(f"optimizer '{name}' has no form for sparse tables; use {known}.")
        self.name = name
        self.states = STATES[name]  # numbers it keeps for each of a row's
        self.adds_up = name != "adam"  # what several did to a row by themselves; means do not
        self._hyper = hyper

    def __call__(
        self, weights: Floats, state: Floats, rows: Ids, grad: Floats, lr: float, t: int
    ) -> None:
        """Apply the gradient of these rows, as the t-th update."""
        rowrules.update(weights, state, rows, grad, *self.told(lr, t))

    def descending(
        self, table: Floats, lr: float, t: int, popular: Popular | None = None
    ) -> Callable[..., tuple[float, float, int]]:
        """A loop that finds gradients of samples and applies them, one by one, to a table [rows,
        weight and state]: it takes what `SparseRows.located` tells, labels, bias and a factor."""
        told = self.told(lr, t)
        if popular is None:
            return partial(descend, table, told)
        return partial(popular.descend, table, told)

    def told(self, lr: float, t: int) -> tuple[Any, ...]:
        """Its code and four numbers, single ones, so that arithmetic stays in single precision."""
        h = self._hyper
        match self.name:
            case "sgd":
                those = lr, h.weight_decay, 0.0, 0.0
            case "adagrad":
                those = lr, h.weight_decay, h.eps or 1e-10, 0.0
            case "ftrl":
                those = lr, h.weight_decay, h.l1, h.beta
            case _:
                # w ← w − η √(1−β₂ᵗ)/(1−β₁ᵗ) · m / (√v + ε)
                rate = lr * (1 - h.beta2**t) ** 0.5 / (1 - h.beta1**t)
                those = rate, 1 - h.beta1, 1 - h.beta2, h.eps or 1e-8
        return CODES[self.name], *(np.float32(one) for one in those)
