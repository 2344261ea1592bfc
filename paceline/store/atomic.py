"""Files that are either the old one or the new one, never half of one."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path

from paceline.store.faults import cannot_write


def write_atomic(path: Path, content: bytes | str) -> None:
    """Replace `path` whole, or raise StoreError and leave it as it was."""
    raw = content.encode() if isinstance(content, str) else content
    # Same folder, so that the replacement is a rename; hidden, so that no listing shows it.
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}")
    try:
        try:
            _write_whole(temporary, raw)
            temporary.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
    except OSError as wrong:
        raise cannot_write(path, wrong) from wrong


def _write_whole(path: Path, raw: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        rest = memoryview(raw)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        # Without this, a rename can reach the disk before the bytes it names.
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
