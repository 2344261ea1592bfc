"""/proc as Linux tells it: files that are read again and again, and the numbers in them.

A read of a file that stays open costs a third of opening it anew, and it can never be another
process's that has got the same number since.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")
TICK = 1 / os.sysconf("SC_CLK_TCK")  # seconds
PAGE = os.sysconf("SC_PAGE_SIZE")
SECTOR = 512  # bytes, in all that Linux counts of disks
AT_ONCE = 1 << 14  # bytes
SHORT = 1 << 11  # bytes: of more than a page a read may give no more than about one


class Spare:
    """How many descriptors may be used up by files that stay open."""

    def __init__(self, left: int | None = None) -> None:
        self.left = resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4 if left is None else left


class ProcFile:
    """Kept open while there are descriptors to spare. Making and reading one raise OSError if it,
    or the process it tells of, is not there."""

    def __init__(self, path: Path, spare: Spare) -> None:
        self._path = path
        self._spare = spare
        self._descriptor: int | None = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        if spare.left <= 0:
            os.close(self._descriptor)
            self._descriptor = None
        else:
            spare.left -= 1

    def read(self) -> bytes:
        if self._descriptor is not None:
            return _whole(self._descriptor)
        descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return _whole(descriptor)
        finally:
            os.close(descriptor)

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
            self._spare.left += 1


def opened(path: Path, spare: Spare) -> ProcFile | None:
    """None where it is not there, or not for us to read."""
    try:
        return ProcFile(path, spare)
    except OSError:
        return None


def _whole(descriptor: int) -> bytes:
    content = os.pread(descriptor, AT_ONCE, 0)
    if len(content) < SHORT:
        return content
    while more := os.pread(descriptor, AT_ONCE, len(content)):
        content += more
    return content


class Stat(NamedTuple):
    """Of /proc/PID/stat."""

    state: str
    major_faults: int
    cpu_seconds: float
    threads: int
    memory_bytes: int


def stat_in(content: bytes) -> Stat:
    # The name before it may have blanks and brackets of its own.
    of = content[content.rindex(b")") + 2 :].split()
    cpu = (int(of[11]) + int(of[12])) * TICK
    return Stat(of[0].decode(), int(of[9]), cpu, int(of[17]), int(of[21]) * PAGE)


def number_after(name: bytes, content: bytes) -> int | None:
    """Of a file with a name and a number a line; the name with all that stands before it."""
    begin = content.find(name)
    if begin < 0:
        return None
    begin += len(name)
    return int(content[begin : begin + 32].split(None, 1)[0])


class Cpu(NamedTuple):
    """Of /proc/stat. `cores` has None where a core is not in use."""

    cores: tuple[float | None, ...]
    iowait: float
    steal: float
    running: int | None


def cpu_in(content: bytes) -> Cpu:
    busy: dict[int, float] = {}
    iowait = steal = 0
    for line in content.splitlines():
        if not line.startswith(b"cpu"):
            break
        name, *told = line.split()
        ticks = [int(count) for count in told] + [0] * (8 - len(told))
        if name == b"cpu":
            iowait, steal = ticks[4], ticks[7]
        else:  # user, nice, system, irq, softirq; what guests took is in the first two
            working = ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6]
            busy[int(name[3:])] = round(working * TICK, 2)
    cores = tuple(busy.get(core) for core in range(max(busy, default=-1) + 1))
    running = number_after(b"\nprocs_running ", content)
    return Cpu(cores, round(iowait * TICK, 2), round(steal * TICK, 2), running)


def nics_in(content: bytes) -> Iterator[tuple[str, int, int]]:
    """Of /proc/net/dev: name, bytes sent, bytes received, of all that ever had any."""
    for line in content.splitlines()[2:]:
        name, _, told = line.rpartition(b":")
        counts = told.split()
        received, sent = int(counts[0]), int(counts[8])
        if sent or received:
            yield name.strip().decode(), sent, received


# Parts of disks, what lies on other disks and would count twice, and memory that looks like one.
NO_DISKS = (b"loop", b"ram", b"zram", b"dm-", b"md", b"sr", b"fd")


def disks_in(content: bytes) -> Iterator[tuple[str, int, int, float]]:
    """Of /proc/diskstats: name, bytes read, bytes written, busy seconds, of all that ever had any.

    A part of a disk follows the disk, and has its name with more behind it.
    """
    disk = b"/"
    for line in content.splitlines():
        of = line.split()
        name = of[2]
        if name.startswith(NO_DISKS) or name.startswith(disk):
            continue
        disk = name
        read, written = int(of[5]) * SECTOR, int(of[9]) * SECTOR
        if read or written:
            yield name.decode(), read, written, int(of[12]) / 1000


def stalls_in(content: bytes) -> Iterator[tuple[str, float]]:
    """Of a file in /proc/pressure: `some` and `full`, seconds."""
    for line in content.splitlines():
        kind, _, told = line.partition(b" ")
        total = number_after(b"total=", told)
        if total is not None:
            yield kind.decode(), total / 1e6
