"""The run folder's files: each is either the old one or the new one, never half of one."""

from __future__ import annotations

from pathlib import Path

from paceline.files import replacing
from paceline.store.faults import cannot_write


def write_atomic(path: Path, content: bytes | str) -> None:
    """Replace `path` whole, or raise StoreError and leave it as it was."""
    try:
        with replacing(path) as file:
            file.write(content.encode() if isinstance(content, str) else content)
    except OSError as wrong:
        raise cannot_write(path, wrong) from wrong
