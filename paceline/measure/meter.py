"""What Linux counts of one process, read from outside while it runs."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from paceline.measure.proc import PROC, ProcFile, Spare, number_after, opened, stat_in

GONE = ("Z", "X")
NANO = 1e-9


class Counters(NamedTuple):
    """Of one process. What is not known is None."""

    cpu_seconds: float
    memory_bytes: int
    threads: int
    delay_seconds: float | None  # of all its threads, those that have ended too
    major_faults: int
    read_bytes: int | None
    written_bytes: int | None


class Meter:
    """A process by its pid. Making one raises ProcessLookupError if there is none."""

    def __init__(self, pid: int, spare: Spare, proc: Path = PROC) -> None:
        self._spare = spare
        self._folder = proc / str(pid)
        stat = opened(self._folder / "stat", spare)
        if stat is None:
            raise ProcessLookupError(pid)
        self._stat = stat
        self._io = opened(self._folder / "io", spare)
        self._threads: dict[str, ProcFile] = {}
        self._delays: dict[str, int] = {}  # nanoseconds
        self._ended = 0  # those of threads that have

    def read(self) -> Counters | None:
        """None once it is gone."""
        try:
            stat = stat_in(self._stat.read())
        except OSError:
            return None
        if stat.state in GONE:
            return None
        io = self._disk()
        return Counters(
            cpu_seconds=round(stat.cpu_seconds, 2),
            memory_bytes=stat.memory_bytes,
            threads=stat.threads,
            delay_seconds=self._delay(stat.threads),
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

    def _delay(self, threads: int) -> float | None:
        """Each thread tells its own, and takes it along when it ends: what it told last stays."""
        if len(self._threads) != threads:
            self._look_for_threads()
        for name, file in list(self._threads.items()):
            try:
                self._delays[name] = int(file.read().split()[1])
            except OSError:
                self._threads.pop(name).close()
                self._ended += self._delays.pop(name, 0)
        if not self._delays:
            return None
        return round((self._ended + sum(self._delays.values())) * NANO, 6)

    def _look_for_threads(self) -> None:
        try:
            found = [path.name for path in (self._folder / "task").iterdir()]
        except OSError:
            return
        for name in found:
            if name not in self._threads:
                file = opened(self._folder / "task" / name / "schedstat", self._spare)
                if file is not None:
                    self._threads[name] = file

    def close(self) -> None:
        for file in (self._stat, self._io, *self._threads.values()):
            if file is not None:
                file.close()
