"""Whoever dies while rows are changed where they lie: a stripe has all of a push, or nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
import pytest
import torch

from paceline.kernels import sparse
from paceline.server.rowview import RowView
from paceline.server.striping import Size, undo_words
from paceline.server.undo import Places, Undo
from paceline.transport import memory
from paceline.transport.board import Board, size_board

ROWS, COLUMNS, STATES, STRIPES = 12, 2, 1, 3
WORD = 0  # says how many pushes the stripe has
SIZES = (Size(ROWS, COLUMNS), Size(5, 1))


class Dead(Exception):
    """What its writer does not survive."""


class Mortal(Board):
    """A board whose writer dies at its n-th write to it."""

    left = 1_000_000

    def post(self, word: int, value: int) -> None:
        if not self.left:
            raise Dead
        self.left -= 1
        super().post(word, value)


class Ground:
    """Two tables, their journal and a board, which outlive whoever uses them."""

    def __init__(self) -> None:
        self.fd = os.memfd_create("board")
        self.words = 1 + STRIPES * undo_words(len(SIZES))
        size_board(self.fd, self.words)
        rng = np.random.default_rng(3)
        self.places = []
        for size in SIZES:
            held = torch.from_numpy(rng.normal(size=size.held(STATES)).astype(np.float32))
            view = RowView.together(memory.Stretch(held), size, STATES)
            self.places.append(Places.of(view, torch.zeros(size.journal(STATES, STRIPES)), STRIPES))

    def life(self) -> tuple[Mortal, Undo]:
        board = Mortal(self.fd, self.words, 0.0)
        return board, Undo(board, 1, self.places, STRIPES)

    def now(self) -> tuple[bytes, ...]:
        views = [place.view for place in self.places]
        return tuple(part.tobytes() for view in views for part in view[:2])


@pytest.fixture
def ground() -> Iterator[Ground]:
    made = Ground()
    yield made
    os.close(made.fd)


TOUCHED = (np.array([1, 4, 10]), np.array([1]))  # of stripe 1


def push(ground: Ground, board: Mortal, undo: Undo, changes: int) -> None:
    """Add 1 to some rows; dies after so many of them."""
    undo.mend(1)
    undo.begin(1, TOUCHED, WORD)
    for place, rows in zip(ground.places, TOUCHED, strict=True):
        for row in rows:
            if not changes:
                raise Dead
            changes -= 1
            place.view.weights[row] += 1
            place.view.state[row] -= 1
    board.post(WORD, board.words[WORD] + 1)
    undo.done(1)


@pytest.mark.parametrize("changes", range(5))
@pytest.mark.parametrize("writes", range(4))  # that rows are noted, the commit, that it is done
def test_all_or_nothing_at_every_write(ground: Ground, writes: int, changes: int) -> None:
    before = ground.now()
    board, undo = ground.life()
    board.left = writes
    died = False
    try:
        push(ground, board, undo, changes)
    except Dead:
        died = True
    _, successor = ground.life()
    successor.mend(1)
    successor.mend(1)  # twice is as good as once
    assert died or board.words[WORD] == 1
    assert (ground.now() != before) == bool(board.words[WORD])
    board, undo = ground.life()
    if not board.words[WORD]:
        push(ground, board, undo, 4)
    wanted = Ground()
    push(wanted, *wanted.life(), 4)
    assert ground.now() == wanted.now()
    os.close(wanted.fd)


def test_stripes_are_noted_apart(ground: Ground) -> None:
    """Two owners at once, of which one dies: the other's push stands."""
    _, undo = ground.life()
    undo.begin(1, TOUCHED, WORD)
    ground.places[0].view.weights[4] = 99.0
    undo.begin(2, (np.array([2, 5]), np.array([2])), WORD)
    ground.places[0].view.weights[2] = 7.0
    undo.done(2)
    _, successor = ground.life()
    successor.mend(2)
    assert (ground.places[0].view.weights[2] == 7.0).all()
    successor.mend(1)
    assert (ground.places[0].view.weights[4] != 99.0).all()


def test_a_journal_has_room_for_all_rows_of_a_stripe(ground: Ground) -> None:
    _, undo = ground.life()
    before = ground.now()
    all_of = (np.arange(0, ROWS, STRIPES), np.arange(0, 5, STRIPES))
    undo.begin(0, all_of, WORD)
    for place, rows in zip(ground.places, all_of, strict=True):
        sparse.put(place.view.weights, rows, np.zeros((len(rows), place.view.weights.shape[1])))
    _, successor = ground.life()
    successor.mend(0)
    assert ground.now() == before
