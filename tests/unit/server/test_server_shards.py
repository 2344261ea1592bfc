"""Ranges of servers: all floats, none twice, as even as whole floats allow."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.server.shards import blocks, cut, in_blocks, recut


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


@given(
    size=st.integers(2000, 10**8),
    servers=st.integers(1, 64),
)
def test_one_tensor_that_is_most_of_the_model_is_everybodys(size: int, servers: int) -> None:
    """Ranges know no tensors: where one is 95 % of the model, each server has its share of it."""
    large = slice(size // 40, size // 40 + size * 95 // 100)
    ranges = cut(size, servers)
    assert max(stop - start for start, stop in ranges) <= 1.05 * size / servers
    shares = [max(0, min(b, large.stop) - max(a, large.start)) for a, b in ranges]
    assert sum(shares) == large.stop - large.start
    assert max(shares) <= 1.05 * size / servers


@settings(deadline=None)
@given(size=st.integers(0, 10**4), block=st.integers(1, 10**3))
def test_blocks_cover_a_shard_and_only_the_last_is_short(size: int, block: int) -> None:
    spans = blocks(size, block)
    assert sum(span.stop - span.start for span in spans) == size
    assert all(left.stop == right.start for left, right in pairwise(spans))
    assert all(span.stop - span.start == block for span in spans[:-1])
    assert all(span.stop > span.start for span in spans)


@given(size=st.integers(1, 200), block=st.integers(1, 50), split=st.booleans(), data=st.data())
def test_a_new_cut_has_every_float_once_and_puts_no_blocks_together(
    size: int, block: int, split: bool, data: st.DataObject
) -> None:
    now = in_blocks(cut(size, data.draw(st.integers(1, min(size, 8)))), block)
    for _ in range(3):
        before = [span for spans in now for span in spans]
        most = size if split else len(before)
        now = recut(now, data.draw(st.integers(1, min(most, 8))), split=split)
        after = [span for spans in now for span in spans]
        assert all(now)
        assert after[0][0] == 0
        assert after[-1][1] == size
        assert all(left[1] == right[0] for left, right in pairwise(after))
        assert all(any(a <= c and d <= b for a, b in before) for c, d in after)
        assert split or after == before
        if split:
            held = [spans[-1][1] - spans[0][0] for spans in now]
            assert max(held) - min(held) <= 1
