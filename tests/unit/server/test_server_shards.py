"""Ranges of servers: all floats, none twice, as even as whole floats allow."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from paceline.server.shards import cut


@given(size=st.integers(0, 10**12), servers=st.integers(1, 256))
def test_ranges_cover_all_without_overlap_and_evenly(size: int, servers: int) -> None:
    ranges = cut(size, servers)
    assert len(ranges) == servers
    assert ranges[0][0] == 0
    assert ranges[-1][1] == size
    assert all(left[1] == right[0] for left, right in pairwise(ranges))
    lengths = {stop - start for start, stop in ranges}
    assert max(lengths) - min(lengths) <= 1


@given(size=st.integers(1, 10**6), data=st.data())
def test_no_server_is_empty_where_there_are_floats_enough(size: int, data: st.DataObject) -> None:
    servers = data.draw(st.integers(1, min(size, 256)))
    assert all(stop > start for start, stop in cut(size, servers))
