"""Text to shards, once: read and cut in one thread, parsed on all cores, written shard by shard.

    files ─► pieces of whole lines ─► parse, in threads ─► rows, in order ─► shards ─► manifest

The manifest says after every shard how far the sources are, so what is broken off goes on there.
Lines that are no rows are counted and left out; the first few are told with file and line.
"""

from __future__ import annotations

import fcntl
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from paceline.data.sparse.shards import (
    Manifest,
    Part,
    Shard,
    read_manifest,
    write_manifest,
    write_shard,
)
from paceline.data.sparse.sources import Piece, Position, packed_bytes, pieces
from paceline.data.sparse.text import Parsed
from paceline.errors import DataError

SHARD = 16 << 20  # entries
LOCK = ".lock"
FAULTS = 5  # that are remembered
ENOUGH = 1000  # lines after which too many malformed ones end it
MIX = np.uint64(0x9E3779B97F4A7C15)

Parse = Callable[[npt.NDArray[np.uint8]], Parsed]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What to convert. `test` has files of their own, or is a share of the rows of `train`."""

    parse: Parse
    made: dict[str, Any]  # all that decides what comes out
    features: int
    width: int | None
    valued: bool
    train: Sequence[Path]
    test: Sequence[Path] = ()
    test_share: float = 0.0
    malformed: float = 0.01  # share of lines that may be
    header: bool = False  # the first line of each file is no row

    def files(self) -> list[tuple[Part, Path]]:
        return [*(("train", path) for path in self.train), *(("test", path) for path in self.test)]


class Progress(NamedTuple):
    """How far a conversion is: shares are of all bytes on disk that it has to read."""

    rows: int
    malformed: int
    share: float
    before: float  # the share, and
    read: int  # rows, since it was taken up


def convert(request: Request, folder: Path, tell: Callable[[Progress], None]) -> Manifest:
    """Have all of it in `folder`, going on from what is there already."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _alone(folder):
            return _convert(request, folder, tell)
    except OSError as wrong:
        raise DataError(
            f"cannot write to '{folder}': {wrong.strerror or wrong}; once that is mended, the same "
            "conversion goes on where it was."
        ) from None


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Two at once would write each other's shards. Whoever dies gives it back."""
    with (folder / LOCK).open("ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DataError(f"another conversion is writing to '{folder}'.") from None
        for part in folder.glob(".*.part"):  # of one that was killed
            part.unlink()
        yield


def _convert(request: Request, folder: Path, tell: Callable[[Progress], None]) -> Manifest:
    manifest = _begun(request, folder)
    if manifest.whole:
        return manifest
    files = request.files()
    paths = [path for _, path in files]
    sizes = [packed_bytes(path) for path in paths]
    collected = Collected(request, folder)
    lines, malformed, faults = manifest.lines, manifest.malformed, list(manifest.faults)
    rows = first = sum(shard.rows for shard in manifest.shards)
    after = Position(**manifest.position) if manifest.position else Position()
    before: float | None = None
    for piece, parsed in _parsed(request.parse, pieces(paths, after, header=request.header)):
        part, path = files[piece.begin.file]
        collected.add(part, parsed, rows)
        rows += len(parsed.labels)
        lines, malformed = lines + parsed.lines, malformed + parsed.bad
        faults += [
            f"{path} line {piece.begin.line + line + 1}: {fault.sentence}: '{text}'"
            for line, fault, text in parsed.faults
        ]
        del faults[FAULTS:]
        if malformed > request.malformed * max(lines, ENOUGH):
            raise too_many(malformed, lines, request.malformed, faults)
        if collected.much:
            manifest = manifest.more(
                collected.flush(len(manifest.shards)),
                position=piece.end._asdict(),
                lines=lines,
                malformed=malformed,
                faults=tuple(faults),
            )
            write_manifest(folder, manifest)
        share = _done(piece, sizes)
        before = share if before is None and first else before or 0.0
        tell(Progress(rows, malformed, share, before, rows - first))
    if malformed > request.malformed * lines:
        raise too_many(malformed, lines, request.malformed, faults)
    manifest = manifest.more(
        collected.flush(len(manifest.shards)),
        position={},
        lines=lines,
        malformed=malformed,
        faults=tuple(faults),
        whole=True,
    )
    if not manifest.rows("train"):
        raise DataError(f"there is no row in {', '.join(str(path) for path in request.train)}.")
    write_manifest(folder, manifest)
    return manifest


def _begun(request: Request, folder: Path) -> Manifest:
    found = read_manifest(folder)
    if found is None:
        return Manifest(
            features=request.features,
            width=request.width,
            valued=request.valued,
            made=request.made,
        )
    if found.made != request.made:
        other = sorted(key for key in found.made if found.made[key] != request.made.get(key))
        raise DataError(
            f"'{folder}' holds rows that were made otherwise ({', '.join(other) or 'less'} "
            "differs): choose another folder, or remove it."
        )
    return found


class Collected:
    """Rows for the next shards, one of each part."""

    def __init__(self, request: Request, folder: Path) -> None:
        self._request = request
        self._folder = folder
        self._parts: dict[Part, list[Parsed]] = {"train": [], "test": []}
        self._entries = 0  # and rows, which may have none

    @property
    def much(self) -> bool:
        """Whether it is enough for a shard."""
        return self._entries >= SHARD

    def add(self, part: Part, parsed: Parsed, first: int) -> None:
        """Rows numbered from `first` on."""
        self._entries += len(parsed.ids) + len(parsed.labels)
        test = parsed.test
        if test is None and self._request.test_share:
            numbers = np.arange(first, first + len(parsed.labels), dtype=np.uint64)
            chance = ((numbers * MIX) >> np.uint64(32)).astype(np.float64) / 2**32
            test = chance < self._request.test_share
        if part == "train" and test is not None:
            self._parts["train"].append(chosen(parsed, ~test, self._request.width))
            self._parts["test"].append(chosen(parsed, test, self._request.width))
        else:
            self._parts[part].append(parsed)

    def flush(self, number: int) -> list[Shard]:
        """Write what there is, as shards numbered from there on."""
        written: list[Shard] = []
        for part, all_of in self._parts.items():
            if any(len(one.labels) for one in all_of):
                name = f"{number + len(written):05d}"
                written.append(write_shard(self._folder, name, part, all_of))
            all_of.clear()
        self._entries = 0
        return written


def chosen(rows: Parsed, which: npt.NDArray[np.bool_], width: int | None) -> Parsed:
    """Some of the rows."""
    counts = np.diff(rows.offsets) if rows.offsets is not None else None
    entries = np.repeat(which, counts if counts is not None else width or 0)
    offsets = None
    if counts is not None:
        offsets = np.concatenate(([0], np.cumsum(counts[which])))
    return rows._replace(
        labels=rows.labels[which],
        ids=rows.ids[entries],
        offsets=offsets,
        values=None if rows.values is None else rows.values[entries],
    )


def _parsed(parse: Parse, found: Iterator[Piece]) -> Iterator[tuple[Piece, Parsed]]:
    """Each piece with its rows, in order; as many are parsed at a time as there are cores."""
    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    with ThreadPoolExecutor(cores, "paceline-parse") as threads:
        under_way: deque[tuple[Piece, Future[Parsed]]] = deque()
        try:
            for piece in found:
                under_way.append((piece, threads.submit(parse, piece.text)))
                if len(under_way) > cores:
                    first, rows = under_way.popleft()
                    yield first, rows.result()
            while under_way:
                first, rows = under_way.popleft()
                yield first, rows.result()
        finally:
            for _, rows in under_way:
                rows.cancel()


def _done(piece: Piece, sizes: Sequence[int]) -> float:
    """Of what is on disk."""
    before = sum(sizes[: piece.end.file])
    return min(1.0, (before + piece.read) / max(1, sum(sizes)))


def too_many(malformed: int, lines: int, most: float, faults: Sequence[str]) -> DataError:
    shown = "; ".join(faults)
    return DataError(
        f"{malformed:,} of {lines:,} lines are malformed, more than the share of {most:g} that may "
        f"be: {shown}."
    )
