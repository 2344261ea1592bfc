"""What was there before a chunk was changed where it lies, in memory that outlives the changer.

    journal the chunk ─► say that it is begun ─► change it ─► the next

Whoever finds a chunk begun cannot know how much of it was changed: it puts the chunk back, and
everything before it is whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import memmove

from torch import Tensor

CHUNK_BITS = 24  # of a beginning say which chunk; above them is the version to be


class Journal:
    """Called by a shard's owner. `rows` is [shards, 2, tensors a chunk, floats]; each shard has a
    word in `at`: which chunk was begun last, of which version."""

    def __init__(self, words: memoryview, at: Sequence[int], rows: Tensor) -> None:
        self._words = words
        self._at = at
        self._rows = rows
        self._views: dict[tuple[int, int, int], list[Tensor]] = {}

    def begin(self, shard: int, version: int, chunk: int, values: Sequence[Tensor]) -> None:
        """These tensors, which are a chunk, are about to be changed to this version."""
        for place, tensor in zip(self._places(shard, chunk, values), values, strict=True):
            memmove(place.data_ptr(), tensor.data_ptr(), 4 * tensor.numel())
        self._words[self._at[shard]] = version << CHUNK_BITS | chunk

    def begun(self, shard: int, version: int) -> int | None:
        """The last chunk that was begun of this version, if one was."""
        begun = self._words[self._at[shard]]
        return begun & (1 << CHUNK_BITS) - 1 if begun >> CHUNK_BITS == version else None

    def restore(self, shard: int, chunk: int, values: Sequence[Tensor]) -> None:
        """Put the chunk that was begun last back. Twice is as good as once."""
        for place, tensor in zip(self._places(shard, chunk, values), values, strict=True):
            tensor.copy_(place)

    def _places(self, shard: int, chunk: int, values: Sequence[Tensor]) -> list[Tensor]:
        """Where these are kept. Views are made once: with a small model they cost the most."""
        # Two rows: while one is written, the other may be the one that counts.
        key = shard, chunk % 2, len(values[0])
        if (found := self._views.get(key)) is None:
            rows = self._rows[shard, chunk % 2]
            found = [row[: len(t)] for row, t in zip(rows, values, strict=False)]
            self._views[key] = found
        return found

    def forget(self, shard: int) -> None:
        """What was begun is as it was before."""
        self._words[self._at[shard]] = 0
