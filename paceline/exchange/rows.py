"""What becomes of the gradients of sparse tables, beside an exchange for everything else.

    push, before the step of the dense exchange ─► step ─► settle, when it has returned

`push` may leave what it has for others to apply, once the round is closed; then `settle` is when
that is done. On return from it this worker's next batch finds the rows it needs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy.typing as npt
import torch
from torch import Tensor

from paceline.exchange.base import Among, Closed, Copied, Post
from paceline.exchange.layout import READY
from paceline.exchange.tables import Table
from paceline.server.rows import RowGradient
from paceline.transport.board import Board
from paceline.types import Traffic

Pushed = Sequence[RowGradient | None]  # a table each; None: the batch did not use it


class Push(NamedTuple):
    """`number` counts this worker's steps from 1, `version` all updates so far, with this one."""

    number: int
    version: int
    lr: float
    weight: int  # samples; 0: no gradient


class Rows:
    """One worker's end. Seconds it waited and spent on updates are added up in `waited` and
    `updated`, those in which forward had to fetch rows in `fetched`, bytes in `sent` and
    `received`, and by peer in `traffic`."""

    fetched = 0.0
    waited = 0.0
    updated = 0.0
    sent = 0
    received = 0

    shared = False  # in memory that all have: the others need not wait for whoever is first

    def bind(self, tables: Sequence[Table]) -> None:
        """Have the tables live where they are exchanged. Unless that is shared, whoever is first
        does it first; the others look at no row before that one has."""
        raise NotImplementedError

    def start(self, closed: Closed | None) -> None:
        """The dense exchange has met the others; `closed` is the last round there was."""

    def expect(self, lr: float, version: int) -> None:
        """The next backward is for a push at this rate."""

    def push(self, push: Push, found: Pushed) -> None:
        """This worker's gradients of a step."""
        raise NotImplementedError

    def settle(self, closed: Closed | None) -> None:
        """The dense exchange has taken the step; `closed` says of whom the round was."""

    def complete(self) -> None:
        """Have all rows here, to be saved."""

    def pushed(self) -> int | None:
        """How many pushes of this worker all rows have; None where that is as everything dense."""
        return None

    def traffic(self) -> tuple[Traffic, ...]:
        """What went to and came from each peer."""
        return ()

    def keep(self, among: Among, copied: Copied) -> dict[str, Tensor]:
        raise NotImplementedError

    def restore(self, kept: dict[str, Tensor]) -> None:
        raise NotImplementedError


def begins(post: Post) -> bool:
    """Whether it is for this worker to bring the first values: nobody has said that they are there.

    Whoever was to bring them may have died over it.
    """
    return post.first and (post.board is None or not Board(post.board, 1, 0.0).words[READY])


def as_tensors(arrays: Mapping[str, npt.NDArray[Any]]) -> dict[str, Tensor]:
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


def as_arrays(tensors: Mapping[str, Tensor]) -> dict[str, npt.NDArray[Any]]:
    return {name: tensor.numpy() for name, tensor in tensors.items()}
