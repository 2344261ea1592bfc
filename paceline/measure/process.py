"""What the operating system knows of a process: the one door to psutil."""

from __future__ import annotations

import psutil

# psutil tells start times by the wall clock, which may be set while a process lives;
# the kernel does not hand out the same pid twice within so few seconds.
CLOCK_SLACK = 10.0
STATES = {
    psutil.STATUS_STOPPED: "stopped",
    psutil.STATUS_TRACING_STOP: "traced",
    psutil.STATUS_DISK_SLEEP: "asleep",
}


class Process:
    """A process by its pid. Making one raises ProcessLookupError if there is none."""

    def __init__(self, pid: int) -> None:
        try:
            self._process = psutil.Process(pid)
            self.created = float(self._process.create_time())
        except psutil.Error as wrong:
            raise ProcessLookupError(pid) from wrong

    def usage(self) -> tuple[float, int] | None:
        """CPU seconds so far and resident bytes, or None once it is gone."""
        try:
            cpu = self._process.cpu_times()
            memory = self._process.memory_info()
        except psutil.Error:
            return None
        return cpu.user + cpu.system, memory.rss

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
