"""A file that only grows, by whole records, whatever the disk does in between."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from paceline.files import need_space
from paceline.store.faults import cannot_write


class AppendFile:
    """One writer's file. Readers may look at any time and see whole appends, save for the last."""

    def __init__(self, path: Path) -> None:
        self.path = path
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        try:
            self._descriptor = os.open(path, flags, 0o666)
        except OSError as wrong:
            raise cannot_write(path, wrong) from wrong
        self.size = os.fstat(self._descriptor).st_size

    def read(self, start: int, length: int) -> bytes:
        """Some of what is in it."""
        return os.pread(self._descriptor, length, start)

    def append(self, content: bytes | memoryview) -> None:
        """Add all of it, or nothing and raise StoreError: a torn record would shift all later."""
        try:
            need_space(self.path)
            rest = memoryview(content)
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
        except OSError as wrong:
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, self.size)
            raise cannot_write(self.path, wrong) from wrong
        self.size += len(content)

    def cut(self, size: int) -> None:
        """Drop what lies beyond `size`, such as the torn record of a writer that was killed."""
        try:
            os.ftruncate(self._descriptor, size)
        except OSError as wrong:
            raise cannot_write(self.path, wrong) from wrong
        self.size = size

    def close(self) -> None:
        os.close(self._descriptor)
