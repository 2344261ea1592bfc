"""A checkpoint back into memory that workers share: each puts its part there, then all go on."""

from __future__ import annotations

from torch import Tensor

from paceline.errors import TaskError
from paceline.exchange.layout import READY
from paceline.transport.board import Board

COUNTING = 1 << 20  # owned to count those who are done: beyond any shard


def put_back(board: Board, workers: int) -> None:
    """This worker's part is where it was: wait until everybody's is."""
    with board.owning(COUNTING):
        board.post(READY, board.words[READY] + 1)
    board.wait(READY, 1 + workers, "all parts of the checkpoint")


def take(kept: Tensor, place: Tensor) -> None:
    """Put what was kept into its place."""
    if kept.shape != place.shape:
        raise TaskError(
            f"the checkpoint has {kept.numel():,} numbers where there are {place.numel():,} now: "
            "the task has changed since."
        )
    place.copy_(kept)
