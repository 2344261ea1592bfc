"""Blocks that are taken over are what their servers left, whoever dies while they are."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.server.adopting import Source, adopt
from paceline.server.kept import Kept, Marks
from paceline.server.shards import Cut, Sizes, Span, cut, in_blocks, recut

ROOM, STATES, SIZE = 4, 2, 60


def memory(spans: list[Span]) -> Kept:
    sizes = Sizes.cut(spans[-1][1] - spans[0][0], len(spans), STATES, ROOM)
    words = memoryview(bytearray(8 * sizes.words)).cast("q")
    return Kept(
        torch.full((2, sizes.floats), -1.0), torch.full((2, STATES, sizes.floats), -1.0), words
    )


def left_by(spans: list[Span]) -> Source:
    """A server whose every float is its place in the model, and whose blocks differ in version."""
    kept = memory(spans)
    first = spans[0][0]
    for index, (start, stop) in enumerate(spans):
        version = 5 + index
        at = slice(start - first, stop - first)
        kept.params[version % 2, at] = torch.arange(start, stop, dtype=torch.float32)
        kept.state[version % 2, :, at] = 1000.0 + torch.arange(start, stop)
        marks = Marks(kept.words, index, len(spans), 2, ROOM)
        marks.stand(version, {0: start + 1, 1: version}, lambda worker: (worker, worker + 1))
    return Source(spans, kept)


def whole(spans: list[Span], kept: Kept, sources: list[Source]) -> None:
    first = spans[0][0]
    for index, (start, stop) in enumerate(spans):
        source = next(s for s in sources if s.block((start, stop)) is not None)
        block = source.block((start, stop))
        assert block is not None
        theirs = Marks(source.kept.words, block, len(source.spans), ROOM)
        mine = Marks(kept.words, index, len(spans), ROOM)
        assert mine.version == theirs.version == 5 + block
        assert mine.pushes() == theirs.pushes()
        assert mine.shares() == theirs.shares() == {0: (0, 1), 1: (1, 2)}
        at = slice(start - first, stop - first)
        assert kept.params[mine.version % 2, at].tolist() == list(range(start, stop))
        assert kept.state[mine.version % 2, 1, at].tolist() == [
            1000 + n for n in range(start, stop)
        ]


def lists(some: Cut) -> list[list[Span]]:
    return [list(spans) for spans in some]


@settings(max_examples=40)
@given(
    before=st.integers(1, 5), after=st.integers(1, 5), block=st.integers(3, 30), split=st.booleans()
)
def test_every_block_is_what_it_was(before: int, after: int, block: int, split: bool) -> None:
    old = lists(in_blocks(cut(SIZE, before), block))
    after = after if split else min(after, sum(map(len, old)))
    sources = [left_by(spans) for spans in old]
    for spans in lists(recut(old, after, split=split)):
        kept = memory(spans)
        adopt(kept, spans, ROOM, sources)
        whole(spans, kept, sources)


class Death(Exception):
    pass


class Mortal:
    """Words that kill whoever writes after so many writes."""

    def __init__(self, words: memoryview) -> None:
        self.words = words
        self.left = -1

    def __getitem__(self, at: int) -> int:
        return self.words[at]

    def __setitem__(self, at: int, value: int) -> None:
        if self.left == 0:
            raise Death
        self.left -= 1
        self.words[at] = value


@pytest.mark.parametrize("writes", range(0, 51, 3))
def test_whoever_dies_over_it_leaves_the_rest_to_the_next_life(writes: int) -> None:
    old = lists(in_blocks(cut(SIZE, 2), 20))
    sources = [left_by(spans) for spans in old]
    spans = lists(recut(old, 1, split=True))[0]
    kept = memory(spans)
    words = Mortal(kept.words)
    words.left = writes
    with pytest.raises(Death):
        adopt(kept._replace(words=words), spans, ROOM, sources)  # type: ignore[arg-type]
    adopt(kept, spans, ROOM, sources)
    whole(spans, kept, sources)


def test_what_has_gone_on_since_is_not_taken_over_again() -> None:
    old = lists(in_blocks(cut(SIZE, 2), 30))
    sources = [left_by(spans) for spans in old]
    spans = lists(recut(old, 1, split=True))[0]
    kept = memory(spans)
    adopt(kept, spans, ROOM, sources)
    Marks(kept.words, 0, len(spans), ROOM).stand(9, {0: 77}, lambda _: (0, 0))
    adopt(kept, spans, ROOM, sources)
    assert Marks(kept.words, 0, len(spans), ROOM).version == 9
