"""What was there before a chunk was changed where it lies, in memory that outlives the changer.

    journal the chunk ─► say that it is begun ─► change it ─► the next

Whoever finds a chunk begun cannot know how much of it was changed: it puts the chunk back, and
everything before it is whole.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

CHUNK_BITS = 24  # of a beginning say which chunk; above them is the version to be


class Journal:
    """Called by a shard's owner. `rows` is [shards, 2, tensors a chunk, floats]; each shard has a
    word in `at`: which chunk was begun last, of which version."""

    def __init__(self, words: memoryview, at: Sequence[int], rows: Tensor) -> None:
        self._words = words
        self._at = at
        self._rows = rows

    def begin(self, shard: int, version: int, chunk: int, values: Sequence[Tensor]) -> None:
        """These tensors, which are a chunk, are about to be changed to this version."""
        # Two rows: while this is written, the one before may be the one that counts.
        for row, tensor in zip(self.row(shard, chunk), values, strict=False):
            row[: len(tensor)].copy_(tensor)
        self._words[self._at[shard]] = version << CHUNK_BITS | chunk

    def begun(self, shard: int, version: int) -> int | None:
        """The last chunk that was begun of this version, if one was."""
        begun = self._words[self._at[shard]]
        return begun & (1 << CHUNK_BITS) - 1 if begun >> CHUNK_BITS == version else None

    def row(self, shard: int, chunk: int) -> Tensor:
        """What was kept of the chunk that was begun last: [tensors, floats]."""
        return self._rows[shard, chunk % 2]

    def restore(self, shard: int, chunk: int, values: Sequence[Tensor]) -> None:
        """Put the chunk that was begun last back. Twice is as good as once."""
        for row, tensor in zip(self.row(shard, chunk), values, strict=False):
            tensor.copy_(row[: len(tensor)])

    def forget(self, shard: int) -> None:
        """What was begun is as it was before."""
        self._words[self._at[shard]] = 0
