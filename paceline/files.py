"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to write that takes `path`'s place, at once and on disk, when the block ends well.

    Any number of processes may do this to one path at the same time; the last one stays. The part
    lies in the same folder, so that taking its place is a rename, and is hidden from listings.
    """
    # Not tempfile: its files are for their owner only, and a cache may be shared.
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    try:
        with part.open("xb") as file:
            yield file
            file.flush()
            # Without this, the rename can reach the disk before the bytes it names.
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
