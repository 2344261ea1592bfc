"""Text to shards, once: cut in one thread, parsed on all cores, written shard by shard.

    files ─► pieces of whole lines ─► load and parse ─► rows, in order ─► shards ─► manifest
                                       a thread a core                    another thread

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
from dataclasses import dataclass, replace
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
AHEAD = 3  # pieces a core: no core waits for who collects them
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
    rows = first = sum(shard.rows for shard in manifest.shards)
    now = Position(**manifest.position) if manifest.position else Position()
    before: float | None = None
    with Writer(folder, manifest) as writer:
        collected = Collected(request)
        told = manifest
        for piece, parsed in _parsed(request.parse, pieces(paths, now, header=request.header)):
            part, path = files[piece.file]
            line = now.line if piece.line is None else piece.line
            collected.add(part, parsed, rows)
            rows += len(parsed.labels)
            faults = (
                f"{path} line {line + number + 1}: {fault.sentence}: '{text}'"
                for number, fault, text in parsed.faults
            )
            now = Position(piece.file, piece.end, line + parsed.lines)
            told = told.more(
                (),
                position=now._asdict(),
                lines=told.lines + parsed.lines,
                malformed=told.malformed + parsed.bad,
                faults=(*told.faults, *faults)[:FAULTS],
            )
            _check(request, told, max(told.lines, ENOUGH))
            if collected.much:
                writer.write(collected.take(), told)
            share = _done(piece, sizes)
            before = share if before is None and first else before or 0.0
            tell(Progress(rows, told.malformed, share, before, rows - first))
        _check(request, told, told.lines)
        return writer.end(collected.take(), told)


def _check(request: Request, told: Manifest, lines: int) -> None:
    if told.malformed > request.malformed * lines:
        raise too_many(told.malformed, told.lines, request.malformed, told.faults)


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


Parts = dict[Part, list[Parsed]]


class Writer:
    """Writes shards in a thread of its own, while the next rows are made: one at a time.

    What a manifest names is whole: it is written when its shards are.
    """

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self._folder = folder
        self._manifest = manifest
        self._thread = ThreadPoolExecutor(1, "paceline-write")
        self._parts = ThreadPoolExecutor(2, "paceline-write-part")
        self._under_way: Future[None] | None = None

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.shutdown()
        self._parts.shutdown()

    def write(self, parts: Parts, told: Manifest) -> None:
        """Have these rows on disk, and then what is told of all until now."""
        self._wait()
        self._under_way = self._thread.submit(self._write, parts, told)

    def end(self, parts: Parts, told: Manifest) -> Manifest:
        """The same with the last rows; everything is there on return."""
        self._wait()
        self._write(parts, told.more((), position={}, whole=True))
        return self._manifest

    def _wait(self) -> None:
        if self._under_way is not None:
            self._under_way.result()

    def _write(self, parts: Parts, told: Manifest) -> None:
        there = [part for part, all_of in parts.items() if any(len(one.labels) for one in all_of)]
        shards = self._manifest.shards

        def write(place: int) -> Shard:
            part = there[place]
            return write_shard(self._folder, f"{len(shards) + place:05d}", part, parts[part])

        # At once: most of the time the disk is waited for.
        more = list(self._parts.map(write, range(len(there))))
        whole = replace(told, shards=(*shards, *more))
        if whole.whole and not whole.rows("train"):
            raise DataError("there is no row to train with.")
        write_manifest(self._folder, whole)
        self._manifest = whole


class Collected:
    """Rows for the next shards, one of each part."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._parts: Parts = {"train": [], "test": []}
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

    def take(self) -> Parts:
        """All there are; the next begin anew."""
        taken, self._parts, self._entries = self._parts, {"train": [], "test": []}, 0
        return taken


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
                under_way.append((piece, threads.submit(_parse, parse, piece)))
                if len(under_way) > AHEAD * cores:
                    first, rows = under_way.popleft()
                    yield first, rows.result()
            while under_way:
                first, rows = under_way.popleft()
                yield first, rows.result()
        finally:
            for _, rows in under_way:
                rows.cancel()


def _parse(parse: Parse, piece: Piece) -> Parsed:
    return parse(piece.load())


def _done(piece: Piece, sizes: Sequence[int]) -> float:
    """Of what is on disk."""
    before = sum(sizes[: piece.file])
    return min(1.0, (before + piece.read) / max(1, sum(sizes)))


def too_many(malformed: int, lines: int, most: float, faults: Sequence[str]) -> DataError:
    shown = "; ".join(faults)
    return DataError(
        f"{malformed:,} of {lines:,} lines are malformed, more than the share of {most:g} that may "
        f"be: {shown}."
    )
