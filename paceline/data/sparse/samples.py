"""Rows of shards as samples: mapped, so that all workers read the same memory."""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from paceline.data.base import Array, Batch, Data, Rows
from paceline.data.sparse.rows import ENTRY_BYTES, Located, SparseRows, whole
from paceline.data.sparse.shards import Manifest, Part, open_shard, whole_manifest
from paceline.errors import DataError
from paceline.kernels.ahead import bring_to_read
from paceline.kernels.jit import compiled, inlined
from paceline.kernels.places import array_at

CHUNK = 1024  # rows side by side on disk, which are read together
KEPT = 1 << 30  # bytes of rows that a process may hold as a whole
MOST_HELD = 256  # chunks, where it may not
LABELS, IDS, OFFSETS, VALUES = range(4)
OFFSET_BYTES = 8
LABELS_AHEAD = 64  # samples whose labels are brought near


def open_shards(folder: Path) -> tuple[Data, Manifest]:
    """What was converted to this folder."""
    manifest = whole_manifest(folder)
    train, test = (SparseSamples(folder, manifest, part) for part in ("train", "test"))
    return Data(train=train, test=test, shape=(manifest.features,), classes=2), manifest


class MappedRows(SparseRows):
    """Rows that are still where they are mapped: they are gathered once somebody asks for all."""

    __slots__ = ("_gathered", "_located", "_samples")

    def __init__(self, samples: SparseSamples, located: Located) -> None:
        self._samples = samples
        self._located = located
        self._gathered: SparseRows | None = None

    def __len__(self) -> int:
        return len(self._located.counts)

    def __getitem__(self, which: slice) -> MappedRows:
        begin, end = whole(which, len(self))
        return MappedRows(self._samples, Located(*(one[begin:end] for one in self._located)))

    def _all(self) -> SparseRows:
        if self._gathered is None:
            self._gathered = self._samples.gathered(self._located)
        return self._gathered

    @property
    def ids(self) -> Tensor:  # type: ignore[override]
        return self._all().ids

    @property
    def offsets(self) -> Tensor:  # type: ignore[override]
        return self._all().offsets

    @property
    def values(self) -> Tensor | None:  # type: ignore[override]
        return self._all().values

    def to(self, device: torch.device, non_blocking: bool = False) -> SparseRows:
        return self if device.type == "cpu" else self._all().to(device, non_blocking)

    def located(self) -> Located:
        return self._located


class SparseSamples:
    """The rows of one part: batches are (SparseRows, labels as floats)."""

    chunk = CHUNK

    def __init__(self, folder: Path, manifest: Manifest, part: Part) -> None:
        shards = [shard for shard in manifest.shards if shard.part == part]
        self._shards = [open_shard(folder, manifest, shard) for shard in shards]
        self._first = np.cumsum([0, *(shard.rows for shard in shards)])  # and the end
        self._entries = np.array([shard.entries for shard in shards], np.int64)
        # Where each shard's labels, entries, offsets and values are.
        places = [shard.addresses() for shard in self._shards]
        self._places = np.array(places, np.int64).reshape(-1, 4)
        self._folder = folder
        self._features = manifest.features
        self._width = manifest.width
        self._valued = manifest.valued
        entry = ENTRY_BYTES * (1 + manifest.valued)
        self._large = sum(shard.entries for shard in shards) * entry > KEPT
        self._widths = np.empty(0, np.int64)  # of each row, where all are equally wide
        self._held: dict[int, None] = {}  # chunks, in the order in which they came
        self._at_hand = False  # as a whole; not before somebody uses it
        if self._large:
            for shard in self._shards:
                shard.read_as_asked()
        self.gathered(self._located(np.empty(0, np.int64))[0])  # loops are here from now on

    def __len__(self) -> int:
        return int(self._first[-1])

    def batch(self, rows: Rows) -> Batch:
        rows = np.ascontiguousarray(rows, np.int64)
        if self._large and len(rows):
            self._hold(np.unique(rows // CHUNK).tolist())
        elif not self._at_hand:
            self._at_hand = True
            for shard in self._shards:
                shard.have_at_hand()
        located, labels = self._located(rows)
        return MappedRows(self, located), torch.from_numpy(labels)

    def _located(self, rows: Rows) -> tuple[Located, Array]:
        """Where these are, and their labels."""
        ids, counts = np.empty(len(rows), np.int64), self._counts(len(rows))
        values = np.empty(len(rows) if self._valued else 0, np.int64)
        labels = np.empty(len(rows), np.float32)
        shards = self._first, self._entries, self._places, self._width or 0
        if not _locate(*shards, rows, ids, values, counts, labels):
            raise self._damaged()
        return Located(ids, values, counts), labels

    def _counts(self, rows: int) -> Array:
        """Room for how many entries they have; or that, where it is known: then nobody writes it
        anew."""
        if not self._width:
            return np.empty(rows, np.int64)
        if len(self._widths) < rows:
            self._widths = np.full(rows, self._width, np.int64)
        return self._widths[:rows]

    def gathered(self, located: Located) -> SparseRows:
        """Those rows, with their entries in one place."""
        offsets = np.zeros(len(located.counts) + 1, np.int64)
        np.cumsum(located.counts, out=offsets[1:])
        ids = np.empty(offsets[-1], np.int32)
        values = np.empty(offsets[-1] if self._valued else 0, np.float32)
        if _gather(*located, offsets, ids, values) >= self._features:
            raise self._damaged()
        entries = torch.from_numpy(ids), torch.from_numpy(offsets)
        return SparseRows(*entries, torch.from_numpy(values) if self._valued else None)

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

    def _damaged(self) -> DataError:
        return DataError(
            f"a shard in '{self._folder}' has rows or features that there are not: it is damaged; "
            "convert the data again."
        )


@inlined
def _shard_of(first, row):  # type: ignore[no-untyped-def]
    """The shard that has a row: near where it would be if all were equally long, as most are."""
    shard = row * (len(first) - 1) // first[-1]
    while row < first[shard]:
        shard -= 1
    while row >= first[shard + 1]:
        shard += 1
    return shard


@compiled
def _locate(first, entries, places, width, rows, ids, values, counts, labels):  # type: ignore[no-untyped-def]
    """Where these rows are, and their labels; whether they are where shards can have them. Counts
    are found where rows do not all have one `width`."""
    low = high = most = labels_at = ids_at = offsets_at = values_at = np.int64(0)
    coming = np.empty(LABELS_AHEAD, np.int64)  # where labels are that are brought near
    for place in range(len(rows) + LABELS_AHEAD):
        turn = np.uint64(place % LABELS_AHEAD)
        if place >= LABELS_AHEAD:
            labels[place - LABELS_AHEAD] = array_at(coming[turn], 1, np.uint8)[0]
        if place >= len(rows):
            continue
        row, count = rows[place], np.int64(width)
        if row < low or row >= high:  # not in the shard of the row before
            if row < 0 or row >= first[-1]:
                return False
            shard = _shard_of(first, row)
            low, high, most = first[shard], first[shard + 1], entries[shard]
            labels_at, ids_at = places[shard, LABELS], places[shard, IDS]
            offsets_at, values_at = places[shard, OFFSETS], places[shard, VALUES]
        local = row - low
        begin = local * width
        if not width:
            begins = array_at(offsets_at + OFFSET_BYTES * local, 2, np.int64)
            begin = begins[0]
            counts[place] = count = begins[1] - begin
        if begin < 0 or count < 0 or begin + count > most:
            return False
        ids[place] = ids_at + ENTRY_BYTES * begin
        if len(values):
            values[place] = values_at + ENTRY_BYTES * begin
        coming[turn] = labels_at + local
        bring_to_read(coming[turn])
    return True


@compiled
def _gather(ids_at, values_at, counts, offsets, out_ids, out_values):  # type: ignore[no-untyped-def]
    """All entries, one after another; the highest feature, where a negative one is high, too."""
    highest = np.uint32(0)
    for row in range(len(counts)):
        to, count = offsets[row], counts[row]
        ids = array_at(ids_at[row], count, np.int32)
        for entry in range(count):
            id_ = ids[entry]
            out_ids[to + entry] = id_
            highest = max(highest, np.uint32(id_))
        if len(values_at):
            values = array_at(values_at[row], count, np.float32)
            for entry in range(count):
                out_values[to + entry] = values[entry]
    return highest
