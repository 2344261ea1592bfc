"""Shared memory that leaves nothing behind.

A segment is a memfd: it has no name, so nothing can leak; the supervisor holds it open and hands
it to every role, and when the last of them is gone the kernel frees it.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

FLOAT_BYTES = 4


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
    area = mmap.mmap(fd, max(1, count) * FLOAT_BYTES)
    return torch.frombuffer(area, dtype=torch.float32, count=count).view(*shape)


def raw(tensor: Tensor) -> memoryview:
    """A tensor's own bytes, to send from or receive into."""
    return memoryview(tensor.numpy().data).cast("B")
