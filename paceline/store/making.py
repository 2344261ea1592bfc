"""Folders that others see only once they are whole, each under a name of its own."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

from paceline.errors import RequestError
from paceline.store.faults import cannot_read, cannot_write


def new_folder(root: Path, what: str, fill: Callable[[Path], None]) -> Path:
    """A folder in `root`, called by the time and what it is, with what `fill` puts into it."""
    making = root / f".new-{secrets.token_hex(6)}"
    try:
        root.mkdir(parents=True, exist_ok=True)
        making.mkdir()
    except OSError as wrong:
        raise cannot_write(root, wrong) from wrong
    try:
        fill(making)
        return _name(making, root, what)
    except OSError as wrong:
        raise cannot_write(root, wrong) from wrong
    finally:
        shutil.rmtree(making, ignore_errors=True)  # still there only if something failed


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Keep others from taking it up at the same time; RequestError if one does already."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as wrong:
        raise cannot_read(folder, wrong) from wrong
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            taken = f"'{folder.resolve().name}' is being taken up by another command."
            raise RequestError(taken) from None
        yield
    finally:
        os.close(descriptor)


def _name(making: Path, root: Path, what: str) -> Path:
    """Give the finished folder a name that no other has, by a rename that only one can win."""
    name = f"{datetime.now():%Y%m%d-%H%M%S}-{_slug(what)}"
    path, taken = root / name, 1
    while True:
        try:
            return making.rename(path)
        except OSError as wrong:  # Linux says either of these of a folder that is not empty
            if wrong.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                raise
        taken += 1
        path = root / f"{name}-{taken}"


def _slug(words: str) -> str:
    return re.sub(r"[^A-Za-z0-9._]+", "-", words).strip("-.") or "run"
