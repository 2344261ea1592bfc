"""Files that are there whole or not at all, and folders that pretend to be full."""

from __future__ import annotations

import errno
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

_full: set[Path] = set()  # in this process


def pretend_full(folder: Path, full: bool) -> None:
    """From now on this process finds no space in `folder`, or finds it again."""
    (_full.add if full else _full.discard)(folder)


def need_space(path: Path) -> None:
    """Raise what a full disk would, where one is pretended."""
    if _full and not _full.isdisjoint(path.parents):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to write that takes `path`'s place, at once and on disk, when the block ends well.

    Any number of processes may do this to one path at the same time; the last one stays. The part
    lies in the same folder, so that taking its place is a rename, and is hidden from listings.
    """
    # Not tempfile: its files are for their owner only, and a cache may be shared.
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    need_space(path)
    try:
        with part.open("xb") as file:
            yield file
            file.flush()
            # Without this, the rename can reach the disk before the bytes it names.
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
