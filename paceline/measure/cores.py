"""The cores this process may run on, which can be fewer than the host has."""

from __future__ import annotations

import os

from paceline.measure.cgroup import granted


def my_cores() -> list[int]:
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def granted_cores() -> int:
    """How many of them it may use in full: a control group may grant less time than there is."""
    cores, quota = len(my_cores()), granted().cores
    return cores if quota is None else max(1, min(cores, int(quota)))
