"""The cores this process may run on, which can be fewer than the host has."""

from __future__ import annotations

import os


def my_cores() -> list[int]:
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))
