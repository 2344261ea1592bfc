"""Shared memory that leaves nothing behind.

A segment is a memfd: it has no name, so nothing can leak; the supervisor holds it open and hands
it to every role, and when the last of them is gone the kernel frees it.
"""

from __future__ import annotations

import errno
import mmap
import os
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from paceline.transport.large_pages import mapped, put_together

if TYPE_CHECKING:
    from torch import Tensor

FLOAT_BYTES = 4
LINE = 16  # floats
LARGE = 1 << 28  # floats of which few may be in use: not in large pages, and not looked through


class Stretch(NamedTuple):
    """Some floats one after another: of a segment, or without one of a process's own memory."""

    floats: Tensor
    fd: int | None = None
    first: int = 0  # where they begin in the segment, in floats

    def used(self) -> list[tuple[int, int]]:
        """The ranges of them that may be other than zero, rising.

        To look at a page of a segment is to have it take memory; of large ones the system is asked.
        """
        count = len(self.floats)
        if self.fd is None or count <= LARGE:
            return [(0, count)]
        begin, end = self.first * FLOAT_BYTES, (self.first + count) * FLOAT_BYTES
        found = []
        while begin < end:
            try:
                begin = os.lseek(self.fd, begin, os.SEEK_DATA)
            except OSError as wrong:
                if wrong.errno != errno.ENXIO:  # nothing but a hole is left
                    raise
                break
            if begin >= end:
                break
            until = min(end, os.lseek(self.fd, begin, os.SEEK_HOLE))
            found.append((begin // FLOAT_BYTES - self.first, until // FLOAT_BYTES - self.first))
            begin = until
        return found

    def put_together(self) -> None:
        """Have them in large pages, unless only few of very many may be in use."""
        if self.fd is not None and len(self.floats) <= LARGE:
            put_together(self.floats)


def available() -> bool:
    return hasattr(os, "memfd_create")


def new_segment(label: str) -> int:
    """An empty segment's file descriptor; `size_segment` gives it its size."""
    return os.memfd_create(f"paceline-{label}", os.MFD_CLOEXEC)


def size_segment(fd: int, floats: int) -> None:
    os.ftruncate(fd, max(1, floats) * FLOAT_BYTES)


def floats(fd: int, shape: Sequence[int]) -> Tensor:
    """The segment as a float32 tensor: no copy, seen by every role that maps it."""
    import torch

    count = 1
    for extent in shape:
        count *= extent
    if not count:
        return torch.empty(*shape)
    area = mapped(fd, count * FLOAT_BYTES)
    return torch.frombuffer(area, dtype=torch.float32, count=count).view(*shape)


def rows(fd: int, count: int, size: int) -> Tensor:
    """The segment as so many vectors, each of which begins a cache line: arithmetic on one that
    does not takes a tenth longer. `padded(size)` floats are needed for each."""
    return floats(fd, (count, padded(size)))[:, :size]


def padded(size: int) -> int:
    """So many floats, and up to the next line's begin."""
    return -(-size // LINE) * LINE


def stretches(fd: int, lengths: Sequence[int]) -> tuple[Stretch, ...]:
    """The segment, cut."""
    whole, firsts = floats(fd, (sum(lengths),)), accumulate(lengths, initial=0)
    return tuple(
        Stretch(whole[first : first + length], fd, first)
        for first, length in zip(firsts, lengths, strict=False)
    )


def own_stretch(count: int) -> Stretch:
    """Zeros of this process's own that take no memory before they are touched.

    In large pages, which are found faster, unless only few of very many may be in use.
    """
    import torch

    if not count:
        return Stretch(torch.empty(0))
    if count > LARGE and available():
        fd = new_segment("own")
        size_segment(fd, count)
        return Stretch(floats(fd, (count,)), fd)
    area = mmap.mmap(-1, count * FLOAT_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        area.madvise(mmap.MADV_HUGEPAGE)
    return Stretch(torch.frombuffer(area, dtype=torch.float32, count=count))


def own_area(size: int) -> mmap.mmap:
    """Bytes of this process's own that take no memory before they are touched."""
    if not available():
        return mmap.mmap(-1, max(1, size))
    fd = new_segment("own")  # of which there may be more than there is memory
    try:
        os.ftruncate(fd, max(1, size))
        return mmap.mmap(fd, max(1, size))
    finally:
        os.close(fd)


def raw(tensor: Tensor) -> memoryview:
    """A tensor's own bytes, to send from or receive into."""
    return memoryview(tensor.numpy().data).cast("B")
