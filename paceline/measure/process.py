"""Which process it is, and how much memory there is: the one door to psutil."""

from __future__ import annotations

import psutil

# psutil tells start times by the wall clock, which may be set while a process lives;
# the kernel does not hand out the same pid twice within so few seconds.
CLOCK_SLACK = 10.0


class Process:
    """A process by its pid. Making one raises ProcessLookupError if there is none."""

    def __init__(self, pid: int) -> None:
        try:
            self._process = psutil.Process(pid)
            self.created = float(self._process.create_time())
        except psutil.Error as wrong:
            raise ProcessLookupError(pid) from wrong

    @property
    def alive(self) -> bool:
        try:
            return bool(self._process.status() != psutil.STATUS_ZOMBIE)
        except psutil.Error:
            return False


def still_runs(pid: int, created: float) -> bool:
    """Whether the process that had this pid and start time lives, not another with its pid."""
    try:
        found = Process(pid)
    except (ProcessLookupError, ValueError, OverflowError):
        return False
    return found.alive and abs(found.created - created) < CLOCK_SLACK


def free_memory() -> int:
    """Bytes of memory this host could give out now."""
    return int(psutil.virtual_memory().available)


def total_memory() -> int:
    """Bytes of memory this host has."""
    return int(psutil.virtual_memory().total)
