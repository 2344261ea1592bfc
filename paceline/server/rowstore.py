"""A server's part of sparse tables: rows are asked for by number, and changed with a push.

Of S servers, server s has the rows that leave the rest s when divided by S, so that popular ones,
which often have neighbouring numbers, are spread over all. What a worker leaves here is used when
the gate of the server's first block lets that worker's push of the same name be applied; so it is
applied once, with the others of its round or at once, exactly as everything else.

Rows are changed where they lie. They are noted before, in memory that outlives this server, with
the word that makes the first block's new version stand: whoever takes over finds both or neither.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from torch import Tensor

from paceline.errors import WireError
from paceline.kernels import sparse
from paceline.server.desk import ASKED, LEFT
from paceline.server.rowkeep import Arrays, kept_rows, put_rows
from paceline.server.rowrules import RowRule
from paceline.server.rows import RowGradient, merged, nothing
from paceline.server.rowview import RowView
from paceline.server.rowwire import (
    AT_ONCE,
    FLOAT_BYTES,
    ID_BYTES,
    Packed,
    packed,
    rows_in,
    values_in,
)
from paceline.server.striping import Size
from paceline.server.undo import Places, Undo
from paceline.transport.memory import Stretch, own_area

ROWS = "rows."  # in a checkpoint


class Left(NamedTuple):
    """What a worker has left for its push of that name: rows and bytes, a table each."""

    sequence: int
    found: tuple[RowGradient, ...]


class RowStore:
    """All tables of one server. Knows nothing of connections."""

    def __init__(self, places: Sequence[Places], rule: RowRule, undo: Undo | None = None) -> None:
        self._places = places
        self._rule = rule
        self._undo = undo
        self._inbox: dict[tuple[int, int, str], memoryview] = {}  # of a worker and table
        self._left: dict[int, Left] = {}

    def most(self, table: int) -> int:
        """Bytes that all rows of a table take, with their values."""
        rows, columns = self.view(table).weights.shape
        return int(rows * (ID_BYTES + columns * FLOAT_BYTES))

    def inbox(self, worker: int, table: int, what: str) -> memoryview:
        """Where what a worker says of a table is received. What is not used costs nothing."""
        key = worker, table, what
        if key not in self._inbox:
            self._inbox[key] = memoryview(own_area(self.most(table)))
        return self._inbox[key]

    def leave(
        self, worker: int, sequence: int, table: int, count: int, ids: int, size: int
    ) -> None:
        """A worker has left rows for a push, in its inbox: so many, of which `ids` bytes say."""
        rows, columns = self.view(table).weights.shape
        said = Packed(count, ids, self.inbox(worker, table, LEFT)[:size])
        gradient = RowGradient(rows_in(said, rows), values_in(said, columns))
        left = self._left.get(worker)
        goes_on = table and left is not None and left.sequence == sequence
        before = left.found if left is not None and goes_on else ()  # the first is a new beginning
        if len(before) != table:
            raise WireError(f"rows of table {table} came out of turn.")
        self._left[worker] = Left(sequence, (*before, gradient))

    def fetch(self, worker: int, table: int, count: int, ids: int, size: int) -> memoryview:
        """The rows that a worker asks for, as they are now."""
        weights = self.view(table).weights
        if ids != size:
            raise WireError(f"{count} rows are asked for with {size} bytes.")
        said = Packed(count, ids, self.inbox(worker, table, ASKED)[:size])
        rows = rows_in(said, len(weights))
        out = np.empty((count, weights.shape[1]), np.float32)
        sparse.take(weights, rows, out)
        return out.reshape(-1).view(np.uint8).data

    def used(self, table: int, first: int) -> tuple[Packed, int]:
        """Rows that are not all zero, from the first on: some of them, and where the rest begin.

        That is 0 where there is no rest.
        """
        view = self.view(table)
        begin, end = next(view.spans(first), (0, 0))
        until = min(end, begin + AT_ONCE)
        rows = view.used(begin, until)
        values = np.empty((len(rows), view.weights.shape[1]), np.float32)
        sparse.take(view.weights, rows, values)
        return packed(rows, values), until

    def fill(self, worker: int, table: int, first: int, size: int) -> None:
        """First values of some rows, one after another, in the worker's inbox."""
        weights = self.view(table).weights
        count, rest = divmod(size, weights.shape[1] * FLOAT_BYTES)
        if rest or first + count > len(weights):
            raise WireError(f"table {table} has {len(weights)} rows here.")
        content = np.frombuffer(self.inbox(worker, table, LEFT)[:size], np.float32)
        weights[first : first + count] = content.reshape(count, weights.shape[1])

    def check(self, worker: int, sequence: int) -> None:
        """Refuse a push without its rows."""
        left = self._left.get(worker)
        if left is None or (left.sequence, len(left.found)) != (sequence, len(self._places)):
            raise WireError(f"worker {worker} has pushed, and left no rows.")

    def begin(self, pushes: Sequence[tuple[int, float]], word: int) -> list[RowGradient]:
        """The mean of what these (worker, weight) have left, a table each.

        They are about to be applied; `word` is what will say so.
        """
        found = []
        for table, place in enumerate(self._places):
            parts = [
                (self._left[worker].found[table], weight) for worker, weight in pushes if weight > 0
            ]
            found.append(merged(parts) if parts else nothing(place.view.weights.shape[1]))
        if self._undo is not None:
            self._undo.begin(0, [gradient.rows for gradient in found], word)
        return found

    def apply(self, found: Sequence[RowGradient], lr: float, version: int) -> None:
        for place, (rows, values) in zip(self._places, found, strict=True):
            self._rule(*place.view[:2], rows, values, lr, version)

    def done(self) -> None:
        if self._undo is not None:
            self._undo.done(0)

    def keep(self) -> Arrays:
        """For a checkpoint, between two updates."""
        return kept_rows([place.view for place in self._places], ROWS)

    def restore(self, kept: Mapping[str, npt.NDArray[Any]]) -> None:
        put_rows([place.view for place in self._places], ROWS, kept)

    def view(self, table: int) -> RowView:
        """Where a table is here; whoever names it may be anybody."""
        if table >= len(self._places):
            raise WireError(f"a frame names table {table}, which this run does not have.")
        return self._places[table].view


def places_in(
    sizes: Sequence[Size], states: int, held: Sequence[Stretch], journals: Sequence[Tensor]
) -> list[Places]:
    """Tables of these sizes, each row with its state."""
    for memory in held:
        memory.put_together()
    return [
        Places.of(RowView.together(memory, size, states), journal, 1)
        for size, memory, journal in zip(sizes, held, journals, strict=True)
    ]
