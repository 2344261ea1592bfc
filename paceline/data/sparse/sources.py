"""Text files in pieces that end with a line's end: plain, gzip or zstd, by what they begin with."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

import numpy as np
import numpy.typing as npt
import zstandard

from paceline.errors import DataError

PIECE = 4 << 20  # bytes
LONGEST = 64 << 20  # bytes of one line
NEAR = 1 << 12  # bytes in which a line mostly ends
NEWLINE = ord("\n")
GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
DAMAGED = (EOFError, gzip.BadGzipFile, zlib.error, zstandard.ZstdError)


class Position(NamedTuple):
    """How far into the sources: bytes and lines of the file, as they are when unpacked."""

    file: int = 0
    byte: int = 0
    line: int = 0


START = Position()


class Piece(NamedTuple):
    """Some lines, the first of which is line `begin.line` of its file, from 0."""

    text: npt.NDArray[np.uint8]
    begin: Position
    end: Position
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
            else:
                _skip(file, begin.byte)
            yield from _lines(paths[number], file, begin)


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
    if file.plain is file.disk:
        file.plain.seek(count)
        return
    while count > 0:
        count -= len(file.plain.read(min(count, PIECE))) or count


def _lines(path: Path, file: Source, begin: Position) -> Iterator[Piece]:
    rest = np.empty(0, np.uint8)
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
            raise DataError(
                f"'{path}' line {begin.line + 1} is longer than {LONGEST >> 20} MB: "
                "is it a text file?"
            )
        rest = text[cut:count].copy()
        if cut:
            lines = int(np.count_nonzero(text[:cut] == NEWLINE))
            end = Position(begin.file, begin.byte + cut - (not read), begin.line + lines)
            yield Piece(text[:cut], begin, end, file.disk.tell())
            begin = end


def _last_end(text: npt.NDArray[np.uint8]) -> int:
    """Where the last whole line ends; 0 if none does."""
    span = NEAR
    while True:
        ends = np.flatnonzero(text[-span:] == NEWLINE)
        if len(ends):
            return max(0, len(text) - span) + int(ends[-1]) + 1
        if span >= len(text):
            return 0
        span *= 16
