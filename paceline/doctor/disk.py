"""The disk that runs are recorded on: writing until it is there, reading it back, small records.

The file has no name, so nothing is left behind however this ends.
"""

from __future__ import annotations

import mmap
import os
import tempfile
import time
from pathlib import Path

from paceline.diagnose.doctor.facts import Disk
from paceline.doctor.asked import Asked
from paceline.measure.spread import Spread, spread
from paceline.measure.text import text

BLOCK = 4 << 20
MOST = 256 << 20  # bytes written before they are read back
SHARE = 0.05  # of the free space, at most
ROUNDS = 8
RECORDS = 32
RECORD = 4096  # bytes


def measure(asked: Asked, seconds: float) -> Disk:
    folder = existing(Path(asked.folder))
    space = os.statvfs(folder)
    free = space.f_bavail * space.f_frsize
    most = min(MOST, int(SHARE * free)) // BLOCK
    if not most:
        raise RuntimeError(f"there is too little space left in '{folder}' to measure it")
    fd = _nameless(folder)
    try:
        write, blocks = _write(fd, most, 0.45 * seconds)
        read = _read(fd, blocks, 0.35 * seconds)
        sync = _records(fd, 0.2 * seconds)
    finally:
        os.close(fd)
    return Disk(
        folder=str(Path(asked.folder).absolute()),
        filesystem=filesystem(folder),
        free=free,
        total=space.f_blocks * space.f_frsize,
        write=write,
        read=read,
        sync=sync,
    )


def existing(folder: Path) -> Path:
    """The folder, or where it would be made."""
    path = folder.absolute()
    return next(each for each in (path, *path.parents) if each.is_dir())


def filesystem(folder: Path, root: Path = Path("/")) -> str | None:
    """The kind of the one the folder lies on: that of the longest mount point above it."""
    real, found = folder.resolve(), (-1, "")
    for line in (text(root / "proc/self/mountinfo") or "").splitlines():
        fields, _, rest = line.partition(" - ")
        mount = Path(fields.split()[4].replace("\\040", " "))
        if real.is_relative_to(mount):
            found = max(found, (len(mount.parts), rest.split()[0]), key=lambda each: each[0])
    return found[1] or None


def _nameless(folder: Path) -> int:
    if hasattr(os, "O_TMPFILE"):
        try:
            return os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o600)
        except OSError:  # not every file system can
            pass
    fd, path = tempfile.mkstemp(prefix=".paceline-doctor-", dir=folder)
    Path(path).unlink()
    return fd


def _write(fd: int, most: int, seconds: float) -> tuple[Spread, int]:
    """Bytes a second, and how many blocks lie there now. The first round says how many to take."""
    block = os.urandom(BLOCK)  # some file systems store zeros for nothing
    rates: list[float] = []
    each = 1
    began = time.perf_counter()
    while len(rates) < ROUNDS and (not rates or time.perf_counter() - began < 2 * seconds):
        start = time.perf_counter()
        for n in range(each):
            os.pwrite(fd, block, (len(rates) * each + n) % most * BLOCK)
        os.fsync(fd)
        rate = each * BLOCK / (time.perf_counter() - start)
        if each == 1 and not rates:
            wanted = int(rate * seconds / ROUNDS / BLOCK)
            each = max(1, min(wanted, most // ROUNDS))
            if each > 1:
                continue
        rates.append(rate)
    return spread(rates), min(most, max(1, len(rates) * each))


def _read(fd: int, blocks: int, seconds: float) -> Spread:
    """Bytes a second, of what the page cache was told to forget."""
    room = memoryview(mmap.mmap(-1, BLOCK))
    each = max(1, blocks // ROUNDS)
    rates: list[float] = []
    began = time.perf_counter()
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    while len(rates) < ROUNDS and (not rates or time.perf_counter() - began < 2 * seconds):
        start = time.perf_counter()
        for n in range(each):
            os.preadv(fd, [room], (len(rates) * each + n) % blocks * BLOCK)
        rates.append(each * BLOCK / (time.perf_counter() - start))
    return spread(rates)


def _records(fd: int, seconds: float) -> Spread:
    """Seconds until a small record at the end of the file is on the disk."""
    taken: list[float] = []
    record = os.urandom(RECORD)
    end, began = os.lseek(fd, 0, os.SEEK_END), time.perf_counter()
    while len(taken) < RECORDS and (not taken or time.perf_counter() - began < seconds):
        start = time.perf_counter()
        os.pwrite(fd, record, end + len(taken) * RECORD)
        os.fsync(fd)
        taken.append(time.perf_counter() - start)
    return spread(taken)
