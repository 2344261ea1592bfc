"""The C library's malloc, set for large models.

A large layer's gradient is made anew each step. By default glibc gives blocks beyond 32 MB back to
the kernel and gets them page by page, zeroed: on a model of 20 million parameters a quarter of the
time. Kept instead, a block is only used again if what was cut off its ends for alignment is joined
to it again, and glibc's per-thread cache of small blocks would hold on to that: the heap would grow
with every step. So roles run without that cache, and with huge pages (`env.for_roles`).
"""

from __future__ import annotations

import ctypes

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of malloc.h


def keep_large_blocks() -> None:
    """Have malloc keep large blocks for the next step."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        libc.mallopt(M_MMAP_THRESHOLD, 1 << 30)
        libc.mallopt(M_TRIM_THRESHOLD, (1 << 31) - 1)


def give_back() -> None:
    """Give unused memory back to the kernel: what building and moving the model left over."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "malloc_trim"):
        libc.malloc_trim(0)
