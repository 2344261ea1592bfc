"""A server takes over blocks of others, from the memory that those have left.

Their servers are gone, so what lies there is whole and stays as it is. A block is here once its
mark stands; whoever dies before that leaves it to its next life, which copies it again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from paceline.server.kept import Kept, Marks
from paceline.server.shards import Span


class Source(NamedTuple):
    """What a former server held: its blocks, one after another, and the memory that it left."""

    spans: Sequence[Span]
    kept: Kept

    def block(self, span: Span) -> int | None:
        """Which of them holds all of this span."""
        found = (n for n, (a, b) in enumerate(self.spans) if a <= span[0] and span[1] <= b)
        return next(found, None)


def adopt(kept: Kept, spans: Sequence[Span], room: int, sources: Sequence[Source]) -> None:
    """Have in `kept` every block of these as its former server left it: version, names, shares."""
    for index, span in enumerate(spans):
        mine = Marks(kept.words, index, len(spans), room)
        if mine.version is not None:  # a former life has it, and has gone on from there
            continue
        for source in sources:
            if (block := source.block(span)) is not None:
                theirs = Marks(source.kept.words, block, len(source.spans), room)
                _copy(kept, spans[0][0], mine, source, theirs, span)


def _copy(kept: Kept, first: int, mine: Marks, source: Source, theirs: Marks, span: Span) -> None:
    version = theirs.version
    if version is None:  # there were no parameters yet
        return
    place = version % 2
    here = slice(span[0] - first, span[1] - first)
    there = slice(span[0] - source.spans[0][0], span[1] - source.spans[0][0])
    kept.params[place, here].copy_(source.kept.params[place, there])
    kept.state[place, :, here].copy_(source.kept.state[place, :, there])
    shares = theirs.shares()
    mine.stand(version, theirs.pushes(), lambda worker: shares.get(worker, (0, 0)))
