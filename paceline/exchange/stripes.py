"""How much shared memory sparse tables take, and what is where on their board.

No torch here: the supervisor reads this. What nobody touches of it costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from paceline.server.catalog import STATES
from paceline.server.striping import STRIPES, Size, undo_words

if TYPE_CHECKING:
    from paceline.spec import RunSpec


class TableLayout(NamedTuple):
    """Floats of all tables together, of their journals, of pushes a worker; words on the board."""

    held: int
    journal: int = 0
    pushed: int = 0
    board: int = 0


def table_layout(spec: RunSpec, sizes: Sequence[Size], room: int) -> TableLayout:
    states = STATES[spec.optimizer or "sgd"]
    held = sum(size.held(states) for size in sizes)
    if spec.strategy == "hogwild":
        return TableLayout(held)
    journal = sum(size.journal(states) for size in sizes)
    undo = STRIPES * undo_words(len(sizes)) + 1  # and how many have put their part back
    if spec.kind.samples == "leases":
        return TableLayout(held, journal, 0, at_once_words(room) + undo)
    pushed = sum(size.pushed for size in sizes)
    return TableLayout(held, journal, pushed, in_rounds_words(room, len(sizes)) + undo)


def at_once_words(room: int) -> int:
    """A worker and stripe: how many of its pushes the stripe has."""
    return room * STRIPES


def in_rounds_words(room: int, tables: int) -> int:
    """A stripe, the last round it has; a worker, table and stripe, how many rows were left."""
    return STRIPES * (1 + room * tables)
