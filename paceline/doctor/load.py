"""What others take of the machine: other work on it, and other guests of its hypervisor."""

from __future__ import annotations

import time
from pathlib import Path
from typing import NamedTuple

from paceline.measure.text import text

# Of the first line of /proc/stat; guests are in user already.
IDLE, IOWAIT, STEAL, COLUMNS = 3, 4, 7, 8


class Ticks(NamedTuple):
    """Of all cores together, since the machine started."""

    total: int
    busy: int
    steal: int

    def since(self, before: Ticks) -> Ticks:
        return Ticks(*(now - then for now, then in zip(self, before, strict=True)))


def ticks(root: Path = Path("/")) -> Ticks | None:
    first = (text(root / "proc/stat") or "").partition("\n")[0].split()
    if len(first) <= COLUMNS or first[0] != "cpu":
        return None
    values = [int(value) for value in first[1 : COLUMNS + 1]]
    total = sum(values)
    return Ticks(total, total - values[IDLE] - values[IOWAIT] - values[STEAL], values[STEAL])


def busy_cores(seconds: float, cores: int) -> float | None:
    """How many cores others keep busy while we do nothing."""
    before = ticks()
    time.sleep(seconds)
    after = ticks()
    if before is None or after is None:
        return None
    spent = after.since(before)
    return cores * spent.busy / spent.total if spent.total else None


def steal(before: Ticks | None, after: Ticks | None) -> float | None:
    """Of the time that the cores were wanted, the share that went to other guests."""
    if before is None or after is None:
        return None
    spent = after.since(before)
    wanted = spent.busy + spent.steal
    return spent.steal / wanted if wanted > 0 else None
