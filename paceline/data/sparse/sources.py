"""Text files in pieces that end with a line's end: plain, gzip or zstd, by what they begin with."""

from __future__ import annotations

import gzip
import io
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

import numpy as np
import numpy.typing as npt
import zstandard

from paceline.errors import DataError

PIECE = 2 << 20  # bytes: a copy of it is still in the cache when it is parsed
LONGEST = 64 << 20  # bytes of one line
NEAR = 1 << 12  # bytes in which a line mostly ends
NEWLINE = ord("\n")
GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
Text = npt.NDArray[np.uint8]
DAMAGED = (EOFError, gzip.BadGzipFile, zlib.error, zstandard.ZstdError)


class Position(NamedTuple):
    """How far into the sources: bytes and lines of the file, as they are when unpacked."""

    file: int = 0
    byte: int = 0
    line: int = 0


START = Position()


class Piece(NamedTuple):
    """Some lines of a file, which `load` gives, from any thread, with the end of the last.

    `line` is the number of its first, from 0, where that is known without those before: of the
    first piece of a file.
    """

    load: Callable[[], Text]
    file: int
    begin: int  # byte
    end: int
    line: int | None
    read: int  # bytes of the file on disk, so far


def pieces(
    paths: Sequence[Path], after: Position = START, *, header: bool = False
) -> Iterator[Piece]:
    """All lines of these files, one file after another, from a position on.

    With `header` the first line of each is left out.
    """
    for number in range(after.file, len(paths)):
        begin = after if number == after.file else Position(number)
        with opened(paths[number]) as file:
            if header and not begin.byte:
                length = len(first_line(paths[number], file))
                begin = Position(number, length, 1)
            elif file.plain is not file.disk:
                _skip(file, begin.byte)
            cut = _spans if file.plain is file.disk else _lines
            yield from cut(paths[number], file, begin)


class Unpacked(io.RawIOBase):
    """What is in a zstd file: frames, one after another, the last of which must be whole."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._frame: Any = None
        self._packed = self._plain = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._plain:
            self._packed = self._packed or self._file.read(PIECE // 4)
            if not self._packed:
                if self._frame is not None:
                    raise EOFError("it ends in the middle of a frame")
                return 0
            self._frame = self._frame or zstandard.ZstdDecompressor().decompressobj()
            self._plain = self._frame.decompress(self._packed)
            self._packed = b""
            if self._frame.eof:
                self._packed, self._frame = self._frame.unused_data, None
        count = min(len(buffer), len(self._plain))
        buffer[:count], self._plain = self._plain[:count], self._plain[count:]
        return count


class Source(NamedTuple):
    """A file, unpacked while it is read, and the same as it is on disk."""

    plain: BinaryIO
    disk: BinaryIO


@contextmanager
def opened(path: Path) -> Iterator[Source]:
    """DataError for whatever is wrong with it while it is read."""
    try:
        with path.open("rb") as file:
            first = file.read(len(ZSTD))
            file.seek(0)
            plain: BinaryIO = file
            if first.startswith(GZIP):
                plain = cast(BinaryIO, gzip.GzipFile(fileobj=file))
            elif first == ZSTD:
                plain = cast(BinaryIO, io.BufferedReader(Unpacked(file), PIECE))
            yield Source(plain, file)
    except DAMAGED as wrong:
        raise DataError(f"'{path}' is damaged: {wrong}.") from None
    except OSError as wrong:
        raise DataError(f"cannot read '{path}': {wrong.strerror or wrong}.") from None


def first_line(path: Path, file: Source) -> bytes:
    """The line at which the file is, with its end."""
    found = file.plain.readline(LONGEST)
    if not found.endswith(b"\n"):
        raise DataError(f"'{path}' has no line after its first: is it a text file?")
    return found


def packed_bytes(path: Path) -> int:
    """What it takes on disk."""
    try:
        return path.stat().st_size
    except OSError as wrong:
        raise DataError(f"cannot read '{path}': {wrong.strerror or wrong}.") from None


def _skip(file: Source, count: int) -> None:
    while count > 0:
        count -= len(file.plain.read(min(count, PIECE))) or count


def _lines(path: Path, file: Source, begin: Position) -> Iterator[Piece]:
    """Of a file that has to be unpacked in order."""
    rest, at = np.empty(0, np.uint8), begin.byte
    first: int | None = begin.line
    while True:
        text = np.empty(len(rest) + PIECE, np.uint8)
        text[: len(rest)] = rest
        # A last line may lack its end.
        read = file.plain.readinto(text[len(rest) :].data)  # type: ignore[attr-defined]
        if not read and not len(rest):
            return
        count = len(rest) + (read or 1)
        if not read:
            text[count - 1] = NEWLINE
        cut = _last_end(text[:count])
        if not cut and count > LONGEST:
            raise _too_long(path, at)
        rest = text[cut:count].copy()
        if cut:
            end = at + cut - (not read)
            yield Piece(partial(_given, text[:cut]), begin.file, at, end, first, file.disk.tell())
            at, first = end, None


def _given(text: Text) -> Text:
    return text


class _Held:
    """A file that stays open for as long as somebody may read it."""

    def __init__(self, file: BinaryIO) -> None:
        self._fd = os.dup(file.fileno())
        self.size = os.fstat(self._fd).st_size

    def __del__(self) -> None:
        os.close(self._fd)

    def into(self, text: Text, begin: int) -> int:
        """Fill it from there on; how many bytes there were."""
        done = 0
        while done < len(text) and (read := os.preadv(self._fd, [text[done:].data], begin + done)):
            done += read
        return done


def _spans(path: Path, file: Source, begin: Position) -> Iterator[Piece]:
    """Of a file that can be read anywhere: only the ends of lines are looked for here."""
    held, at = _Held(file.disk), begin.byte
    first: int | None = begin.line
    while at < held.size:
        end = _cut(path, held, at)
        yield Piece(partial(_loaded, path, held, at, end), begin.file, at, end, first, end)
        at, first = end, None


def _cut(path: Path, held: _Held, begin: int) -> int:
    """Where a piece ends that begins there: after a line, or with the file."""
    end = begin
    while (end := end + PIECE) < held.size:
        span = NEAR
        while True:
            near = np.empty(min(span, end - begin), np.uint8)
            held.into(near, end - len(near))
            if last := _last_end(near):
                return end - len(near) + last
            if len(near) == end - begin:
                break
            span *= 16
        if end - begin > LONGEST:
            raise _too_long(path, begin)
    return held.size


def _loaded(path: Path, held: _Held, begin: int, end: int) -> Text:
    text = np.empty(end - begin + 1, np.uint8)
    if held.into(text[:-1], begin) < end - begin:
        raise DataError(f"'{path}' was cut short while it was read.")
    text[-1] = NEWLINE  # which a last line may lack
    return text[:-1] if text[-2] == NEWLINE else text


def _too_long(path: Path, byte: int) -> DataError:
    return DataError(
        f"'{path}' has a line of more than {LONGEST >> 20} MB at byte {byte:,}: is it a text file?"
    )


def _last_end(text: Text) -> int:
    """Where the last whole line ends; 0 if none does."""
    span = NEAR
    while True:
        ends = np.flatnonzero(text[-span:] == NEWLINE)
        if len(ends):
            return max(0, len(text) - span) + int(ends[-1]) + 1
        if span >= len(text):
            return 0
        span *= 16
