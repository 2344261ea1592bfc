"""Rows of shards as samples: mapped, so that all workers read the same memory."""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from paceline.data.base import Batch, Data, Rows
from paceline.data.sparse.rows import SparseRows
from paceline.data.sparse.shards import Manifest, Part, open_shard, whole_manifest
from paceline.errors import DataError
from paceline.kernels.jit import compiled

CHUNK = 1024  # rows side by side on disk, which are read together
KEPT = 1 << 30  # bytes of rows that a process may hold as a whole
MOST_HELD = 256  # chunks, where it may not
ENTRY_BYTES = 4
NO_OFFSETS = np.empty(0, np.int64)
NO_VALUES = np.empty(0, np.float32)


def open_shards(folder: Path) -> tuple[Data, Manifest]:
    """What was converted to this folder."""
    manifest = whole_manifest(folder)
    train, test = (SparseSamples(folder, manifest, part) for part in ("train", "test"))
    return Data(train=train, test=test, shape=(manifest.features,), classes=2), manifest


class SparseSamples:
    """The rows of one part: batches are (SparseRows, labels as floats)."""

    chunk = CHUNK

    def __init__(self, folder: Path, manifest: Manifest, part: Part) -> None:
        shards = [shard for shard in manifest.shards if shard.part == part]
        self._shards = [open_shard(folder, manifest, shard) for shard in shards]
        self._first = np.cumsum([0, *(shard.rows for shard in shards)])  # and the end
        self._folder = folder
        self._features = manifest.features
        self._width = manifest.width
        self._valued = manifest.valued
        entry = ENTRY_BYTES * (1 + manifest.valued)
        self._large = sum(shard.entries for shard in shards) * entry > KEPT
        self._held: dict[int, None] = {}  # chunks, in the order in which they came

    def __len__(self) -> int:
        return int(self._first[-1])

    def batch(self, rows: Rows) -> Batch:
        rows = np.ascontiguousarray(rows, np.int64)
        if self._large and len(rows):
            self._hold(np.unique(rows // CHUNK).tolist())
        shards = np.searchsorted(self._first, rows, side="right") - 1
        local = rows - self._first[shards]
        used = np.unique(shards) if len(shards) and shards.min() != shards.max() else shards[:1]
        offsets = self._offsets(shards, local, used)
        entries = int(offsets[-1])
        ids, labels = np.empty(entries, np.int32), np.empty(len(rows), np.float32)
        values = np.empty(entries if self._valued else 0, np.float32)
        for number in used.tolist():
            shard = self._shards[number]
            mine = np.flatnonzero(shards == number) if len(used) > 1 else np.arange(len(rows))
            sound = _gather(
                shard.labels,
                shard.ids,
                NO_OFFSETS if shard.offsets is None else shard.offsets,
                NO_VALUES if shard.values is None else shard.values,
                self._width or 0,
                local,
                mine,
                offsets,
                ids,
                values,
                labels,
                self._features,
            )
            if not sound:
                raise self._damaged()
        return (
            SparseRows(
                torch.from_numpy(ids),
                torch.from_numpy(offsets),
                torch.from_numpy(values) if self._valued else None,
            ),
            torch.from_numpy(labels),
        )

    def _hold(self, chunks: Sequence[int]) -> None:
        """Have these at hand, and let go of those that came first.

        What is read of a file stays in memory as long as nobody else wants it: that is the
        system's. What this process holds of it is bounded.
        """
        for chunk in chunks:
            if chunk not in self._held:
                self._held[chunk] = None
                self._advise(chunk, mmap.MADV_WILLNEED)
        while len(self._held) > MOST_HELD:
            self._advise(gone := next(iter(self._held)), mmap.MADV_DONTNEED)
            del self._held[gone]

    def _advise(self, chunk: int, advice: int) -> None:
        begin, end = chunk * CHUNK, min(len(self), (chunk + 1) * CHUNK)
        first, last = np.searchsorted(self._first, [begin, end - 1], side="right") - 1
        for number in range(first, last + 1):
            start, stop = self._first[number], self._first[number + 1]
            part = max(begin, start) - start, min(end, stop) - start
            self._shards[number].advise(int(part[0]), int(part[1]), advice)

    def _offsets(self, shards: Rows, local: Rows, used: Rows) -> Rows:
        """Where each row's entries go."""
        if self._width is not None:
            return np.arange(len(shards) + 1, dtype=np.int64) * self._width
        counts = np.empty(len(shards) + 1, np.int64)
        counts[0] = 0
        for number in used.tolist():
            mine = shards == number
            where, begins = local[mine], self._shards[number].offsets
            assert begins is not None
            counts[1:][mine] = begins[where + 1] - begins[where]
        if counts.min() < 0:
            raise self._damaged()
        return np.cumsum(counts)

    def _damaged(self) -> DataError:
        return DataError(
            f"a shard in '{self._folder}' has rows or features that there are not: it is damaged; "
            "convert the data again."
        )


@compiled
def _gather(  # type: ignore[no-untyped-def]
    labels, ids, begins, values, width, local, mine, offsets, out_ids, out_values, out_labels, most
):
    """Rows `local[mine]` of a shard, each to its place; whether they are sound, with all features
    below `most`."""
    sound = True
    for place in mine:
        row = local[place]
        begin = row * width if width else begins[row]
        to, count = offsets[place], offsets[place + 1] - offsets[place]
        if begin < 0 or count < 0 or begin + count > len(ids):
            return False
        for entry in range(count):
            id_ = ids[begin + entry]
            out_ids[to + entry] = id_
            sound &= (id_ >= 0) & (id_ < most)
        if len(out_values):
            for entry in range(count):
                out_values[to + entry] = values[begin + entry]
        out_labels[place] = labels[row]
    return sound
