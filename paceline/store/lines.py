"""Records as lines of JSON: appended by one writer, read by anybody at any time."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from paceline.errors import StoreError
from paceline.store.append import AppendFile
from paceline.store.faults import cannot_read
from paceline.store.text import to_json
from paceline.types import record


class LineFile:
    """Opened at the first append, so that a folder shows only the records it has."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: AppendFile | None = None

    def append(self, things: Iterable[Any]) -> None:
        """Add record dataclasses, one line each, in one write."""
        lines = "".join(to_json(record(thing)) for thing in things)
        if self._file is None:
            self._file = AppendFile(self.path)
        self._file.append(lines.encode())

    def read(self, skip: int = 0) -> list[dict[str, Any]]:
        """Every whole line after the first few; one still being written is left out."""
        try:
            raw = self.path.read_bytes()
        except FileNotFoundError:
            return []
        except OSError as wrong:
            raise cannot_read(self.path, wrong) from wrong
        # What follows the last newline is empty, or torn.
        whole = raw.split(b"\n")[skip:-1]
        try:
            return [json.loads(line) for line in whole]
        except ValueError:
            raise StoreError(f"'{self.path}' is damaged: a line is not valid JSON.") from None

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
