"""Every probe that takes time: what it finds, for how long it measures, when it is given up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from paceline.diagnose.doctor.facts import (
    Bandwidth,
    Disk,
    Equality,
    Gpus,
    Link,
    Shared,
    Threads,
    Torch,
)

GRACE = 15.0  # seconds beyond three times its own, for what comes before and after measuring
IMPORT = 60.0  # the longest that importing torch may take, from a cold and distant disk


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """`module` has `measure(asked, seconds)`, which gives a `record`."""

    name: str
    title: str
    module: str
    record: Any
    seconds: float
    quick: float
    torch: bool = False  # it needs torch, hence a process that has imported it

    def length(self, quick: bool) -> float:
        return self.quick if quick else self.seconds

    def limit(self, quick: bool) -> float:
        """Seconds after which it is given up."""
        return 3 * self.length(quick) + GRACE + (IMPORT if self.torch else 0.0)


def _probe(name: str, title: str, record: Any, seconds: float, quick: float, **more: Any) -> Probe:
    module = f"paceline.doctor.{more.pop('module', name)}"
    return Probe(
        name=name,
        title=title,
        module=module,
        record=record,
        seconds=seconds,
        quick=quick,
        **more,
    )


PROBES = (
    _probe("core_speed", "the speed of each core", tuple[Equality, ...], 4.0, 0.6),
    _probe("bandwidth", "memory bandwidth", Bandwidth, 2.5, 0.5),
    _probe("shared", "shared memory between two processes", Shared, 1.5, 0.3),
    _probe("loopback", "the loopback", Link, 2.5, 0.5),
    _probe("peer", "the other host", Link, 4.0, 1.5),
    _probe("disk", "the disk", Disk, 3.0, 0.6),
    _probe("gpus", "GPUs", Gpus, 0.0, 0.0),
    _probe("torch", "torch", Torch, 0.0, 0.0, module="torch_build", torch=True),
    _probe("threads", "torch threads", Threads, 9.0, 1.5, torch=True),
    _probe("gpu_speed", "the speed of GPUs", tuple[Equality, ...], 4.0, 1.0, torch=True),
)
BY_NAME = {probe.name: probe for probe in PROBES}
