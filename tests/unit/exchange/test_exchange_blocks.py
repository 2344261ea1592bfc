"""Progress of backward: every float of every block once, and a block leaves with its last."""

from __future__ import annotations

from itertools import accumulate, pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.exchange.blocks import Progress, all_blocks
from paceline.server.shards import cut, in_blocks

sizes = st.lists(st.integers(0, 40), min_size=1, max_size=8).filter(lambda some: sum(some) > 0)


def spans_of(layers: list[int]) -> list[slice]:
    return [slice(a, b) for a, b in pairwise(accumulate(layers, initial=0))]


@given(layers=sizes, block=st.integers(1, 50), data=st.data())
def test_blocks_cover_the_gradient_once(layers: list[int], block: int, data: st.DataObject) -> None:
    size = sum(layers)
    shards = cut(size, data.draw(st.integers(1, min(4, size))))
    found = all_blocks(in_blocks(shards, block))
    assert [at for one in found for at in range(one.at.start, one.at.stop)] == list(range(size))
    for server, (start, stop) in enumerate(shards):
        own = [one for one in found if one.server == server]
        assert [one.number for one in own] == list(range(len(own)))
        assert (own[0].at.start, own[-1].at.stop) == (start, stop)
        assert all(0 < one.at.stop - one.at.start <= block for one in own)


@settings(deadline=None)
@given(layers=sizes, block=st.integers(1, 50), data=st.data())
def test_every_float_is_given_once_and_a_block_is_complete_with_its_last(
    layers: list[int], block: int, data: st.DataObject
) -> None:
    size, spans = sum(layers), spans_of(layers)
    found = all_blocks(in_blocks(cut(size, data.draw(st.integers(1, min(4, size)))), block))
    progress = Progress(spans, found)
    for _ in range(2):  # the second backward is as the first
        progress.begin()
        given_ = [0] * size
        complete: set[int] = set()
        for parameter in data.draw(st.permutations(range(len(layers)))):
            for part in progress.parts[parameter]:
                inside, at = part.inside, part.at
                assert spans[parameter].start + inside.start == at.start
                assert inside.stop - inside.start == at.stop - at.start > 0
                for place in range(at.start, at.stop):
                    given_[place] += 1
                whole = found[part.block].at
                last = progress.made(part.block)
                assert last == all(given_[whole])
                if last:
                    assert part.block not in complete
                    complete.add(part.block)
        assert given_ == [1] * size
        assert complete == set(range(len(found)))


@given(layers=sizes, block=st.integers(1, 50))
def test_a_block_is_alone_where_one_parameter_has_all_of_it(layers: list[int], block: int) -> None:
    spans = spans_of(layers)
    found = all_blocks(in_blocks([(0, sum(layers))], block))
    progress = Progress(spans, found)
    for number, one in enumerate(found):
        within = any(s.start <= one.at.start and one.at.stop <= s.stop for s in spans)
        assert progress.alone(number) == within
