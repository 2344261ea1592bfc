"""Sparse rows on disk: shards that numpy maps into memory, and a manifest of those that are whole.

    manifest.json          what the rows are, how far conversion is, and every shard
    00000.labels.npy       uint8, a row each
    00000.ids.npy          int32, an entry each
    00000.offsets.npy      int64, where rows begin, and the end; not where all rows are equally wide
    00000.values.npy       float32, an entry each; not where all are one

A shard is there once the manifest names it, and the manifest is replaced whole.
"""

from __future__ import annotations

import json
import mmap
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple

import numpy as np

from paceline.data.base import Array
from paceline.data.sparse.text import Parsed
from paceline.errors import DataError
from paceline.files import replacing

FORMAT = 1
MANIFEST = "manifest.json"
POPULATE_READ = 22  # MADV_POPULATE_READ, from Linux 5.14 on
AT_ONCE = 64 << 20  # bytes, in multiples of a page
Part = Literal["train", "test"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """Some rows of one part."""

    name: str
    part: Part
    rows: int
    entries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """`made` says from what and how: a conversion that was broken off goes on if that is the same.
    `position` is how far it is, of those that go on; `whole` that it has got to the end."""

    features: int
    width: int | None  # entries of a row, where all have equally many
    valued: bool
    made: dict[str, Any]
    shards: tuple[Shard, ...] = ()
    position: dict[str, Any] = field(default_factory=dict)
    lines: int = 0
    malformed: int = 0
    faults: tuple[str, ...] = ()  # the first few
    whole: bool = False

    def rows(self, part: Part) -> int:
        return sum(shard.rows for shard in self.shards if shard.part == part)

    def more(self, shards: Iterable[Shard], **changes: Any) -> Manifest:
        """The same with these shards too."""
        return replace(self, shards=(*self.shards, *shards), **changes)


def write_manifest(folder: Path, manifest: Manifest) -> None:
    about = {"format": FORMAT, **asdict(manifest)}
    with replacing(folder / MANIFEST) as file:
        file.write(json.dumps(about, indent=1).encode() + b"\n")


def read_manifest(folder: Path) -> Manifest | None:
    """None where there is none; DataError where it cannot be used."""
    path = folder / MANIFEST
    try:
        about = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as wrong:
        raise DataError(f"cannot read '{path}': {wrong}.") from None
    try:
        if about.pop("format") != FORMAT:
            raise DataError(f"'{path}' is of another version: convert the data again.")
        shards = tuple(Shard(**shard) for shard in about.pop("shards"))
        faults = tuple(about.pop("faults"))
        return Manifest(shards=shards, faults=faults, **about)
    except (AttributeError, KeyError, TypeError):
        raise DataError(f"'{path}' is damaged: convert the data again.") from None


def whole_manifest(folder: Path) -> Manifest:
    """Of what was converted to the end; else a DataError."""
    manifest = read_manifest(folder)
    if manifest is None:
        raise DataError(
            f"there are no shards in '{folder}': it has no {MANIFEST}; 'paceline convert' makes it."
        )
    if not manifest.whole:
        raise DataError(f"'{folder}' is not converted to the end: run the same conversion again.")
    return manifest


def write_shard(folder: Path, name: str, part: Part, pieces: Sequence[Parsed]) -> Shard:
    """Write all rows of these, one after another; they count once a manifest names the shard."""
    first = pieces[0]
    columns: dict[str, list[Array]] = {
        "labels": [one.labels for one in pieces],
        "ids": [one.ids for one in pieces],
    }
    if first.offsets is not None:
        counts = [np.diff(one.offsets) for one in pieces if one.offsets is not None]
        columns["offsets"] = [np.concatenate(([0], np.cumsum(np.concatenate(counts))))]
    if first.values is not None:
        columns["values"] = [one.values for one in pieces if one.values is not None]
    for column, arrays in columns.items():
        with replacing(folder / f"{name}.{column}.npy") as file:
            _save(file, arrays)
    lengths = {column: sum(map(len, arrays)) for column, arrays in columns.items()}
    return Shard(name=name, part=part, rows=lengths["labels"], entries=lengths["ids"])


def _save(file: BinaryIO, arrays: Sequence[Array]) -> None:
    """As numpy saves one array of them all."""
    whole = {
        "descr": np.lib.format.dtype_to_descr(arrays[0].dtype),
        "fortran_order": False,
        "shape": (sum(map(len, arrays)),),
    }
    np.lib.format.write_array_header_1_0(file, whole)
    for array in arrays:
        file.write(np.ascontiguousarray(array).data)


class Column(NamedTuple):
    """An array of a shard, mapped."""

    content: Array
    area: mmap.mmap
    first: int  # byte of the file at which it begins

    def advise(self, begin: int, end: int, advice: int) -> None:
        """Tell the system of some of its numbers; of pages that they have for themselves."""
        size = self.content.itemsize
        start = -(-(self.first + begin * size) // mmap.PAGESIZE) * mmap.PAGESIZE
        stop = (self.first + end * size) // mmap.PAGESIZE * mmap.PAGESIZE
        if start < stop:
            self.area.madvise(advice, start, stop - start)


@dataclass(frozen=True, slots=True)
class Opened:
    """A shard, mapped. All rows have `width` entries where there are no offsets."""

    labels: Array
    ids: Array
    offsets: Array | None
    values: Array | None
    columns: dict[str, Column]
    width: int

    def addresses(self) -> list[int]:
        """Where labels, entries, offsets and values are; 0: there are none."""
        columns = self.labels, self.ids, self.offsets, self.values
        return [0 if column is None else column.ctypes.data for column in columns]

    def advise(self, begin: int, end: int, advice: int) -> None:
        """Tell the system of some rows."""
        first, last = begin * self.width, end * self.width
        if self.offsets is not None:
            first, last = int(self.offsets[begin]), int(self.offsets[end])
        for name, column in self.columns.items():
            by_entry = name in ("ids", "values")
            column.advise(*((first, last) if by_entry else (begin, end)), advice)

    def have_at_hand(self) -> None:
        """All of it: read in order, and no page has to be asked for when it is first used."""
        for column in self.columns.values():
            for begin in range(0, len(column.area), AT_ONCE):
                size = min(AT_ONCE, len(column.area) - begin)
                try:
                    column.area.madvise(POPULATE_READ, begin, size)
                except OSError:  # a system that does not know it does without
                    return

    def read_as_asked(self) -> None:
        """Nothing is read along that nobody asked for: the system would take megabytes around each
        row, and drop others for them."""
        for column in self.columns.values():
            column.area.madvise(mmap.MADV_RANDOM)


def open_shard(folder: Path, manifest: Manifest, shard: Shard) -> Opened:
    """DataError if it is not what the manifest says."""

    def column(name: str, dtype: str, length: int) -> Column:
        path = folder / f"{shard.name}.{name}.npy"
        try:
            found = np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, EOFError) as wrong:
            raise DataError(f"cannot use '{path}': {wrong}.") from None
        if found.dtype != dtype or found.shape != (length,):
            raise DataError(f"'{path}' is not what '{MANIFEST}' says: convert the data again.")
        return Column(found.view(np.ndarray), found._mmap, found.offset)

    columns = {
        "labels": column("labels", "uint8", shard.rows),
        "ids": column("ids", "int32", shard.entries),
    }
    if manifest.width is None:
        columns["offsets"] = column("offsets", "int64", shard.rows + 1)
    if manifest.valued:
        columns["values"] = column("values", "float32", shard.entries)
    found = {name: one.content for name, one in columns.items()}
    return Opened(
        found["labels"],
        found["ids"],
        found.get("offsets"),
        found.get("values"),
        columns,
        manifest.width or 0,
    )
