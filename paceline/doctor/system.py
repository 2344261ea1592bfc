"""Host, memory, pages, limits and versions, as the system describes them."""

from __future__ import annotations

import os
import platform
import resource
import time
from importlib import metadata
from pathlib import Path

from paceline import __version__
from paceline.diagnose.doctor.facts import Host, Limits, Memory, Pages, Versions
from paceline.measure.cgroup import granted
from paceline.measure.text import chosen, table, text

THP = "sys/kernel/mm/transparent_hugepage"
CLOCK = "sys/devices/system/clocksource/clocksource0/current_clocksource"
LOOKS = 20_000  # at the clock, to find out what one costs
KB = 1024  # the kernel's


def host(root: Path = Path("/")) -> Host:
    lines = (text(root / "proc/cpuinfo") or "").splitlines()
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    flags = next((line for line in lines if line.startswith("flags")), "")
    return Host(
        name=platform.node(),
        os=platform.platform(terse=True),
        cpu=named[0] if named else platform.processor() or platform.machine(),
        virtual="hypervisor" in flags.split(),
        clock=text(root / CLOCK),
        clock_ns=_clock_ns(),
    )


def _clock_ns() -> float:
    began = time.perf_counter()
    for _ in range(LOOKS):
        time.monotonic()
    return (time.perf_counter() - began) / LOOKS * 1e9


def memory(root: Path = Path("/"), swapped: int = 0) -> Memory:
    """`swapped` is how many pages had moved to and from swap when doctor began."""
    found = table(root / "proc/meminfo")
    limit = granted(root).memory
    total = found["MemTotal"] * KB
    return Memory(
        total=total,
        available=found["MemAvailable"] * KB,
        limit=limit if limit is not None and limit < total else None,
        swap_total=found.get("SwapTotal", 0) * KB,
        swap_used=(found.get("SwapTotal", 0) - found.get("SwapFree", 0)) * KB,
        swapped=max(0, pages_swapped(root) - swapped),
    )


def pages_swapped(root: Path = Path("/")) -> int:
    """Pages that have moved to and from swap since the machine started."""
    found = table(root / "proc/vmstat")
    return found.get("pswpin", 0) + found.get("pswpout", 0)


def pages(root: Path = Path("/")) -> Pages:
    found = table(root / "proc/meminfo")
    return Pages(
        enabled=chosen(root / THP / "enabled"),
        shared=chosen(root / THP / "shmem_enabled"),
        reserved=found.get("HugePages_Total", 0) * found.get("Hugepagesize", 0) * KB,
    )


def limits(shm: Path = Path("/dev/shm")) -> Limits:
    files, most = (
        None if found == resource.RLIM_INFINITY else found
        for found in resource.getrlimit(resource.RLIMIT_NOFILE)
    )
    try:
        found = os.statvfs(shm)
    except OSError:
        return Limits(files=files, files_most=most)
    return Limits(
        files=files,
        files_most=most,
        shm_size=found.f_blocks * found.f_frsize,
        shm_free=found.f_bavail * found.f_frsize,
    )


def versions() -> Versions:
    return Versions(
        python=platform.python_version(),
        paceline=__version__,
        torch=_version("torch"),
        numpy=_version("numpy"),
    )


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
