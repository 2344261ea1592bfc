"""Small files that the kernel writes: what is not there, or not for us, is None."""

from __future__ import annotations

from pathlib import Path


def text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def integer(path: Path) -> int | None:
    found = text(path)
    try:
        return int(found) if found is not None else None
    except ValueError:
        return None


def chosen(path: Path) -> str | None:
    """The word in brackets: `always [madvise] never`."""
    _, bracket, rest = (text(path) or "").partition("[")
    return rest.partition("]")[0] if bracket else None


def listed(ranges: str) -> list[int]:
    """`0-3,8` as the kernel writes a list of cores."""
    found: list[int] = []
    for part in filter(None, ranges.split(",")):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def table(path: Path) -> dict[str, int]:
    """Lines of a name and a number, as /proc/meminfo and /proc/vmstat have them."""
    found = {}
    for line in (text(path) or "").splitlines():
        name, *rest = line.replace(":", " ").split()
        if rest and rest[0].isdigit():
            found[name] = int(rest[0])
    return found
