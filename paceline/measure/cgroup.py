"""What the control group grants, of either version: the least along the way up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from paceline.measure.text import integer, table, text

NO_LIMIT = 1 << 60  # version 1 says so with a number near the largest


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    cores: float | None = None
    memory: int | None = None
    throttled: int | None = None  # periods in which time was withheld


def granted(root: Path = Path("/")) -> Grant:
    cores = [found for folder in _folders(root, "cpu") if (found := _cores(folder)) is not None]
    memory = [found for folder in _folders(root, "memory") if (found := _memory(folder))]
    throttled = [
        found
        for folder in _folders(root, "cpu")
        if (found := table(folder / "cpu.stat").get("nr_throttled")) is not None
    ]
    return Grant(
        cores=min(cores, default=None),
        memory=min(memory, default=None),
        throttled=max(throttled, default=None),
    )


def _cores(folder: Path) -> float | None:
    quota, _, period = (text(folder / "cpu.max") or "").partition(" ")
    if quota.isdigit() and period.isdigit():
        return int(quota) / int(period)
    old, every = integer(folder / "cpu.cfs_quota_us"), integer(folder / "cpu.cfs_period_us")
    return old / every if old and every and old > 0 else None


def _memory(folder: Path) -> int | None:
    limit = integer(folder / "memory.max") or integer(folder / "memory.limit_in_bytes")
    return limit if limit and limit < NO_LIMIT else None


def _folders(root: Path, controller: str) -> Iterator[Path]:
    """Our group's folder and those above it, of whichever version has the controller."""
    ours = _groups(root)
    for line in (text(root / "proc/self/mountinfo") or "").splitlines():
        fields, _, rest = line.partition(" - ")
        _, _, _, top, mount, *_ = fields.split()
        kind, _, options = (*rest.split(), "", "", "")[:3]
        if kind == "cgroup2":
            group = ours.get("")
        elif kind == "cgroup" and controller in options.split(","):
            group = ours.get(controller)
        else:
            continue
        if group is not None:
            yield from _upwards(root / mount.lstrip("/"), _below(group, top))


def _groups(root: Path) -> dict[str, str]:
    """Our group by controller; version 2 has all of them in one, under no name."""
    found: dict[str, str] = {}
    for line in (text(root / "proc/self/cgroup") or "").splitlines():
        _, names, path = line.split(":", 2)
        found |= dict.fromkeys(names.split(","), path)
    return found


def _below(group: str, top: str) -> PurePosixPath:
    """A container sees its own group as the top of what is mounted."""
    path = PurePosixPath(group)
    return path.relative_to(top) if path.is_relative_to(top) else path.relative_to("/")


def _upwards(mount: Path, group: PurePosixPath) -> Iterator[Path]:
    if ".." in group.parts:  # we are outside of what is mounted here
        group = PurePosixPath()
    for folder in (group, *group.parents):
        yield mount / folder
