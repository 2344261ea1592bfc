"""What a run left behind, found in /proc.

Every process that is started, however far down, inherits a variable that is its starter's alone.
So leftovers are found by their environment, whoever their parent is by now, and other work on the
same machine is never taken for ours.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import sys
from pathlib import Path

PROC = Path("/proc")


def leave_mark(name: str) -> str:
    """Mark every process that is started from here on; the mark."""
    os.environ[name] = secrets.token_hex(8)
    return f"{name}={os.environ[name]}"


def processes(mark: str) -> dict[int, str]:
    """Every living process with this mark, and its command line."""
    found = {}
    for entry in PROC.glob("[0-9]*"):
        try:
            if mark.encode() in (entry / "environ").read_bytes().split(b"\0"):
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                found[int(entry.name)] = command.strip()
        except OSError:  # it ended meanwhile, or is not ours to look at
            continue
    return found


def kept_nurseries() -> set[int]:
    """The processes that may outlive a run: they are kept for the next ones."""
    api = sys.modules.get("paceline.api")
    return {nursery.pid for nursery in api._idle} if api else set()


def segments_held(pid: int | str) -> list[str]:
    """Shared-memory segments of ours that a process has open or mapped."""
    found = []
    with contextlib.suppress(OSError):
        for fd in (PROC / str(pid) / "fd").iterdir():
            with contextlib.suppress(OSError):
                found.append(str(fd.readlink()))
    with contextlib.suppress(OSError):
        found += (PROC / str(pid) / "maps").read_text().splitlines()
    return [name for name in found if "memfd:paceline-" in name]


def leftovers(mark: str) -> list[str]:
    """Processes and segments that a run should have taken with it."""
    kept = kept_nurseries()
    living = processes(mark).items()
    left = [f"process {pid}: {command}" for pid, command in living if pid not in kept]
    for pid in ("self", *kept):
        left += [f"segment in process {pid}: {name}" for name in segments_held(pid)]
    return left
