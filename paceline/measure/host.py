"""Everything Linux counts of the host it runs on."""

from __future__ import annotations

import platform
from pathlib import Path

from paceline.measure.proc import (
    PAGE,
    PROC,
    ProcFile,
    Spare,
    cpu_in,
    disks_in,
    nics_in,
    number_after,
    opened,
    stalls_in,
)
from paceline.types import Disk, Gpu, HostResources, Nic

SYS = Path("/sys")
FILES = ("stat", "net/dev", "diskstats", "meminfo", "vmstat", "loadavg")
PRESSURE = ("cpu", "memory", "io")
KIB = 1024


class HostMeter:
    """What is not there, as pressure on older systems, is not known."""

    def __init__(self, spare: Spare, proc: Path = PROC, sys: Path = SYS) -> None:
        self._name = platform.node()
        self._sys = sys
        self._speeds: dict[str, int | None] = {}
        self._paging = b""
        self._files: dict[str, ProcFile] = {}
        for name in (*FILES, *(f"pressure/{what}" for what in PRESSURE)):
            if (file := opened(proc / name, spare)) is not None:
                self._files[name] = file

    def read(self, time: float, gpus: tuple[Gpu, ...] = ()) -> HostResources:
        cpu = cpu_in(self._read("stat"))
        memory = self._read("meminfo")
        load = self._read("loadavg").split()
        nics = {name: Nic(*counts) for name, *counts in nics_in(self._read("net/dev"))}
        total, free = (_memory(name, memory) for name in (b"SwapTotal:", b"SwapFree:"))
        if total or not self._paging:  # without swap, what was swapped stays as it is
            self._paging = self._read("vmstat")
        return HostResources(
            time=round(time, 6),
            host=self._name,
            cores=cpu.cores,
            iowait_seconds=cpu.iowait if cpu.cores else None,
            steal_seconds=cpu.steal if cpu.cores else None,
            running=cpu.running,
            load=float(load[0]) if load else None,
            memory_available=_memory(b"MemAvailable:", memory),
            swap_used=None if total is None or free is None else total - free,
            swapped_in=_pages(b"pswpin ", self._paging),
            swapped_out=_pages(b"pswpout ", self._paging),
            nics=nics,
            speeds={name: speed for name in nics if (speed := self._speed(name)) is not None},
            disks={
                name: Disk(read, written, busy)
                for name, read, written, busy in disks_in(self._read("diskstats"))
            },
            pressure=self._pressure(),
            gpus=gpus,
        )

    def _read(self, name: str) -> bytes:
        try:
            return self._files[name].read() if name in self._files else b""
        except OSError:
            return b""

    def _pressure(self) -> dict[str, float]:
        """`memory` is when something had to wait for it, `memory_full` when everything had."""
        return {
            what if kind == "some" else f"{what}_{kind}": seconds
            for what in PRESSURE
            for kind, seconds in stalls_in(self._read(f"pressure/{what}"))
        }

    def _speed(self, nic: str) -> int | None:
        """Mbit/s. Many that are not real do not know theirs, and say -1."""
        if nic not in self._speeds:
            try:
                told = int((self._sys / "class" / "net" / nic / "speed").read_text())
            except (OSError, ValueError):
                told = -1
            self._speeds[nic] = told if told > 0 else None
        return self._speeds[nic]

    def close(self) -> None:
        for file in self._files.values():
            file.close()


def _memory(name: bytes, content: bytes) -> int | None:
    kib = number_after(name, content)
    return None if kib is None else kib * KIB


def _pages(name: bytes, content: bytes) -> int | None:
    pages = number_after(b"\n" + name, content)
    return None if pages is None else pages * PAGE
