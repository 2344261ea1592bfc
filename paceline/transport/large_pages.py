"""Shared memory in large pages, which the processor finds faster than many small ones.

Linux puts small pages of a segment together where it is asked to (since 6.1), and where the segment
is mapped at a multiple of their size. That it may not be able to is no fault: pages are then small.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
import weakref
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

PAGE = 1 << 21
WORTHWHILE = 8 * PAGE  # bytes: less than that is found fast enough
COLLAPSE = 25  # of asm-generic/mman-common.h
MAP_FIXED, PROT_NONE = 0x10, 0  # not among those of the module mmap
FAILED = ctypes.c_void_p(-1).value


@cache
def _libc() -> Any:
    """The C library's calls, or None where pages are not put together."""
    if not sys.platform.startswith("linux"):
        return None
    libc = ctypes.CDLL(None, use_errno=True)
    size, number = ctypes.c_size_t, ctypes.c_int
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, size, number, number, number, ctypes.c_long]
    libc.munmap.argtypes = [ctypes.c_void_p, size]
    libc.madvise.argtypes = [ctypes.c_void_p, size, number]
    return libc


def mapped(fd: int, size: int) -> Any:
    """The segment's memory; what it is held by unmaps it when it goes."""
    libc = _libc()
    if libc is None or size < WORTHWHILE:
        return mmap.mmap(fd, size)
    # Room with a multiple of the page's size in it; the rest of that room is given back.
    room = size + PAGE
    start = libc.mmap(None, room, PROT_NONE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
    if start == FAILED:
        return mmap.mmap(fd, size)
    at, both = -(-start // PAGE) * PAGE, mmap.PROT_READ | mmap.PROT_WRITE
    if libc.mmap(at, size, both, mmap.MAP_SHARED | MAP_FIXED, fd, 0) == FAILED:
        libc.munmap(start, room)
        return mmap.mmap(fd, size)
    end = -(-(at + size) // mmap.PAGESIZE) * mmap.PAGESIZE
    for begin, stop in ((start, at), (end, start + room)):
        if begin < stop:
            libc.munmap(begin, stop - begin)
    area = (ctypes.c_char * size).from_address(at)
    weakref.finalize(area, libc.munmap, at, size).atexit = False  # the system does that then
    return area


def put_together(values: Tensor) -> None:
    """Have a part of a segment, all of which will be used, in large pages."""
    libc = _libc()
    if libc is None or values.nbytes < WORTHWHILE or not values.is_contiguous():
        return
    flat = values.view(-1)
    float(flat[:: PAGE // flat.element_size()].sum())  # of a page that is not there none is made
    begin = values.data_ptr() // PAGE * PAGE
    libc.madvise(begin, (values.data_ptr() + values.nbytes) // PAGE * PAGE - begin, COLLAPSE)
