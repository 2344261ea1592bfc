"""A server's part of sparse tables, and what it makes of what anybody may send."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from paceline.errors import WireError
from paceline.kernels.arrays import Floats
from paceline.server.desk import ASKED, LEFT
from paceline.server.elementwise import Hyper
from paceline.server.rowrules import RowRule
from paceline.server.rowstore import RowStore, places_in
from paceline.server.rowwire import Packed, packed, rows_in, values_in
from paceline.server.striping import Size, share_of
from paceline.transport import memory

SIZES = (Size(10, 2), Size(4, 1))


def store() -> RowStore:
    held = [memory.own_stretch(size.held(0)) for size in SIZES]
    nothing = [torch.empty(0) for _ in SIZES]
    return RowStore(places_in(SIZES, 0, held, nothing), RowRule("sgd", Hyper()))


def leave(there: RowStore, worker: int, sequence: int, table: int, rows: list[int]) -> Floats:
    values = np.full((len(rows), SIZES[table].columns), worker + 1, np.float32)
    said = packed(np.array(rows, np.int64), values)
    there.inbox(worker, table, LEFT)[: len(said.content)] = said.content
    there.leave(worker, sequence, table, said.rows, said.ids, len(said.content))
    return values


def fetch(there: RowStore, table: int, rows: list[int]) -> list[float]:
    said = packed(np.array(rows, np.int64))
    there.inbox(0, table, ASKED)[: len(said.content)] = said.content
    return np.frombuffer(there.fetch(0, table, said.rows, said.ids, said.ids), np.float32).tolist()


def test_a_push_is_the_mean_of_what_was_left() -> None:
    there = store()
    for worker, rows in ((0, [1, 3]), (1, [3, 9])):
        leave(there, worker, 7, 0, rows)
        leave(there, worker, 7, 1, [])
        there.check(worker, 7)
    found = there.begin([(0, 10.0), (1, 30.0)], 0)
    there.apply(found, 1.0, 1)
    there.done()
    assert fetch(there, 0, [1, 3, 9]) == [-0.25, -0.25, -1.75, -1.75, -1.5, -1.5]
    assert fetch(there, 1, [0, 1, 2, 3]) == [0.0] * 4


def test_a_push_without_its_rows_is_refused() -> None:
    there = store()
    with pytest.raises(WireError, match="left no rows"):
        there.check(0, 1)
    leave(there, 0, 1, 0, [2])
    with pytest.raises(WireError, match="left no rows"):
        there.check(0, 1)  # those of the second table are missing
    leave(there, 0, 1, 1, [2])
    there.check(0, 1)
    with pytest.raises(WireError, match="left no rows"):
        there.check(0, 2)
    with pytest.raises(WireError, match="out of turn"):
        leave(there, 0, 2, 1, [2])


def test_rows_that_are_asked_for_all_at_once() -> None:
    there = store()
    assert there.used(0, 0) == (packed(np.empty(0, np.int64), np.empty((0, 2), np.float32)), 10)
    assert there.used(0, 10)[1] == 0
    leave(there, 0, 1, 0, [4, 6])
    leave(there, 0, 1, 1, [])
    there.apply(there.begin([(0, 1.0)], 0), 1.0, 1)
    said, after = there.used(0, 0)
    assert rows_in(said, 10).tolist() == [4, 6]
    assert values_in(said, 2).tolist() == [[-1.0, -1.0], [-1.0, -1.0]]
    assert there.used(0, after)[1] == 0
    assert rows_in(there.used(0, 5)[0], 10).tolist() == [6]


@pytest.mark.parametrize(
    ("table", "first", "size"), [(2, 0, 8), (0, 9, 16), (0, 0, 7), (1, 5, 4), (0, 2**32 - 1, 8)]
)
def test_first_values_that_have_no_place_are_refused(table: int, first: int, size: int) -> None:
    there = store()
    with pytest.raises(WireError):
        there.fill(0, table, first, size)


@given(rows=st.sets(st.integers(0, 99)), columns=st.integers(1, 3))
def test_rows_come_back_from_the_wire(rows: set[int], columns: int) -> None:
    those = np.array(sorted(rows), np.int64)
    values = np.arange(len(those) * columns, dtype=np.float32).reshape(-1, columns)
    said = packed(those, values)
    assert rows_in(said, 100).tolist() == those.tolist()
    assert (values_in(said, columns) == values).all()


@given(
    content=st.binary(max_size=30), count=st.integers(0, 2**32 - 1), ids=st.integers(0, 2**32 - 1)
)
def test_garbage_is_rows_that_are_there_or_refused(content: bytes, count: int, ids: int) -> None:
    said = Packed(count, ids, memoryview(content))
    try:
        rows = rows_in(said, 50)
    except WireError:
        return
    assert len(rows) == count
    assert (np.diff(rows) > 0).all()
    assert all(0 <= row < 50 for row in rows)


@pytest.mark.parametrize("servers", [1, 2, 3, 7])
def test_servers_have_every_row_once_and_evenly(servers: int) -> None:
    shares = [share_of(Size(20, 3), server, servers) for server in range(servers)]
    assert sum(share.rows for share in shares) == 20
    assert max(share.rows for share in shares) - min(share.rows for share in shares) <= 1
