"""Everything Linux counts of one process, read from outside while it runs."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from paceline.measure.proc import PROC, Spare, number_after, opened, stat_in

GONE = ("Z", "X")
STOPPED = "T"
NANO = 1e-9


class Counters(NamedTuple):
    """Of one process, all its threads, those that have ended too. What is not known is None."""

    cpu_seconds: float
    memory_bytes: int
    stopped: bool
    peak_bytes: int | None
    threads: int
    voluntary: int | None
    involuntary: int | None
    delay_seconds: float | None
    major_faults: int
    read_bytes: int | None
    written_bytes: int | None


class Meter:
    """A process by its pid. Making one raises ProcessLookupError if there is none."""

    def __init__(self, pid: int, spare: Spare, proc: Path = PROC) -> None:
        self._spare = spare
        self._name = str(pid)
        self._folder = proc / self._name
        self._threads: dict[str, _Thread] = {}
        self._over = [0, 0, 0]  # of threads that have ended: switches of both kinds, delay
        stat = opened(self._folder / "stat", spare)
        if stat is None:
            raise ProcessLookupError(pid)
        self._stat = stat
        self._io = opened(self._folder / "io", spare)

    def read(self) -> Counters | None:
        """None once it is gone."""
        try:
            stat = stat_in(self._stat.read())
        except OSError:
            return None
        if stat.state in GONE:
            return None
        voluntary, involuntary, delay = self._switches(stat.threads)
        first, io = self._threads.get(self._name), self._disk()
        peak = number_after(b"\nVmHWM:", first.status) if first is not None else None
        return Counters(
            cpu_seconds=round(stat.cpu_seconds, 2),
            memory_bytes=stat.memory_bytes,
            stopped=stat.state == STOPPED,
            peak_bytes=None if peak is None else peak * 1024,
            threads=stat.threads,
            voluntary=voluntary,
            involuntary=involuntary,
            delay_seconds=None if delay is None else round(delay * NANO, 6),
            major_faults=stat.major_faults,
            read_bytes=number_after(b"\nread_bytes:", io),
            written_bytes=number_after(b"\nwrite_bytes:", io),
        )

    def _disk(self) -> bytes:
        """Nothing, where it may not be read."""
        try:
            return self._io.read() if self._io is not None else b""
        except OSError:
            return b""

    def _switches(self, threads: int) -> tuple[int | None, int | None, int | None]:
        """Of all threads: each tells its own, and takes it along when it ends."""
        for name in [name for name, thread in self._threads.items() if not thread.read()]:
            ended = self._threads.pop(name)
            self._over = [a + b for a, b in zip(self._over, ended.last, strict=True)]
            ended.close()
        if len(self._threads) != threads:
            self._look_for_threads()
        if not self._threads:
            return None, None, None
        each = zip(self._over, *(thread.last for thread in self._threads.values()), strict=True)
        voluntary, involuntary, delay = map(sum, each)
        told = all(thread.tells_delay for thread in self._threads.values())
        return voluntary, involuntary, delay if told else None

    def _look_for_threads(self) -> None:
        try:
            found = [path.name for path in (self._folder / "task").iterdir()]
        except OSError:
            return
        for name in found:
            if name not in self._threads:
                thread = _Thread(self._folder / "task" / name, self._spare, name == self._name)
                if thread.read():
                    self._threads[name] = thread
                else:
                    thread.close()

    def close(self) -> None:
        self._stat.close()
        if self._io is not None:
            self._io.close()
        for thread in self._threads.values():
            thread.close()


class _Thread:
    """`last` is what it told last: switches of both kinds, and nanoseconds without a core."""

    def __init__(self, folder: Path, spare: Spare, first: bool) -> None:
        self._first = first
        self._status = opened(folder / "status", spare)
        self._sched = opened(folder / "schedstat", spare)
        self._ran = b""
        self.status = b""  # that of the first thread tells of the whole process, too
        self.last = (0, 0, 0)

    def read(self) -> bool:
        """Whether it is still there."""
        if self._status is None:
            return False
        try:
            if self._sched is not None:
                ran, self._ran = self._ran, self._sched.read()
                # A thread that has not run since has nothing new to tell: most of them sleep.
                if self._ran == ran and not self._first:
                    return True
            self.status = status = self._status.read()
        except OSError:
            return False
        voluntary = number_after(b"\nvoluntary_ctxt_switches:", status)
        involuntary = number_after(b"\nnonvoluntary_ctxt_switches:", status)
        waited = int(self._ran.split()[1]) if self._ran else 0
        self.last = (voluntary or 0, involuntary or 0, waited)
        return True

    @property
    def tells_delay(self) -> bool:
        return self._sched is not None

    def close(self) -> None:
        for file in (self._status, self._sched):
            if file is not None:
                file.close()
