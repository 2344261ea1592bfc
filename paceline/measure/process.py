"""Which process it is, and how much memory there is: the one door to psutil."""

from __future__ import annotations

from typing import NamedTuple

import psutil

from paceline.measure.meter import Meter
from paceline.measure.proc import Spare

# psutil tells start times by the wall clock, which may be set while a process lives;
# the kernel does not hand out the same pid twice within so few seconds.
CLOCK_SLACK = 10.0
STATES = {
    psutil.STATUS_STOPPED: "stopped",
    psutil.STATUS_TRACING_STOP: "traced",
    psutil.STATUS_DISK_SLEEP: "asleep",
}


class Used(NamedTuple):
    """Seconds so far in which threads of a process ran, and in which they could have, had there
    been a core for them."""

    cpu: float
    delay: float = 0.0


class Process:
    """A process by its pid. Making one raises ProcessLookupError if there is none."""

    def __init__(self, pid: int) -> None:
        try:
            self._process = psutil.Process(pid)
            self.created = float(self._process.create_time())
        except psutil.Error as wrong:
            raise ProcessLookupError(pid) from wrong

    @property
    def state(self) -> str:
        """`stopped`, as by SIGSTOP; `traced`, by a debugger; `asleep` in the kernel, where no
        signal reaches it; or nothing, if it runs or waits as any process does."""
        try:
            return STATES.get(self._process.status(), "")
        except psutil.Error:
            return ""

    @property
    def alive(self) -> bool:
        try:
            return bool(self._process.status() != psutil.STATUS_ZOMBIE)
        except psutil.Error:
            return False


class Processes:
    """What keeps processes from running, and what they have used; each is known once asked for."""

    def __init__(self) -> None:
        self._known: dict[int, Process] = {}

    def state(self, pid: int) -> str:
        """As `Process.state`; nothing, if it is gone."""
        known = self._process(pid)
        return known.state if known is not None else ""

    def used(self, pid: int) -> Used | None:
        """None once it is gone. Nothing of it stays open: few are asked for, and seldom."""
        try:
            told = Meter(pid, Spare(0)).read()
        except ProcessLookupError:
            return None
        return Used(told.cpu_seconds, told.delay_seconds or 0.0) if told is not None else None

    def _process(self, pid: int) -> Process | None:
        if pid not in self._known:
            try:
                self._known[pid] = Process(pid)
            except ProcessLookupError:
                return None
        return self._known[pid]


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
