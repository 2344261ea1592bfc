"""Cores and caches, as the kernel describes them."""

from __future__ import annotations

from pathlib import Path

from paceline.diagnose.doctor.facts import Cache, Cores
from paceline.measure.cgroup import granted
from paceline.measure.cores import my_cores
from paceline.measure.text import integer, listed, text

CPU = "sys/devices/system/cpu"
UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def cores(root: Path = Path("/"), mine: list[int] | None = None) -> Cores:
    allowed = my_cores() if mine is None else mine
    there = _online(root) or allowed
    topology = [root / CPU / f"cpu{n}" / "topology" for n in there]
    packages = [integer(folder / "physical_package_id") for folder in topology]
    ids = [integer(folder / "core_id") for folder in topology]
    known = None not in packages and None not in ids
    frequency = root / CPU / f"cpu{allowed[0]}" / "cpufreq"
    grant = granted(root)
    return Cores(
        logical=len(there),
        physical=len(set(zip(packages, ids, strict=True))) if known else None,
        mine=tuple(allowed),
        sockets=len(set(packages)) if known else None,
        nodes=len(list((root / "sys/devices/system/node").glob("node[0-9]*"))) or None,
        quota=grant.cores,
        throttled=grant.throttled,
        governor=text(frequency / "scaling_governor"),
        driver=text(frequency / "scaling_driver"),
        preference=text(frequency / "energy_performance_preference"),
    )


def caches(root: Path = Path("/")) -> list[Cache]:
    """Every kind of cache, the nearest first."""
    instances: dict[tuple[int, str], dict[str, int]] = {}  # by the cores that share each, its size
    for n in _online(root):
        for folder in sorted((root / CPU / f"cpu{n}" / "cache").glob("index[0-9]*")):
            level, kind = integer(folder / "level"), text(folder / "type")
            size, shared = text(folder / "size"), text(folder / "shared_cpu_list")
            if level and kind and size and shared:
                instances.setdefault((level, kind.lower()), {})[shared] = _bytes(size)
    return [
        Cache(
            level=level,
            kind=kind,
            size=max(found.values()),
            shared_by=max(len(listed(shared)) for shared in found),
            count=len(found),
        )
        for (level, kind), found in sorted(instances.items())
    ]


def last_level(found: list[Cache]) -> int:
    """Bytes of all caches of the last level together; some where none is told."""
    if not found:
        return 32 << 20
    last = max(found, key=lambda cache: cache.level)
    return last.size * last.count


def _online(root: Path) -> list[int]:
    return listed(text(root / CPU / "online") or "")


def _bytes(size: str) -> int:
    """`512K`"""
    unit = UNITS.get(size[-1:], 1)
    return int(size.rstrip("KMG")) * unit
