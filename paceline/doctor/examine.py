"""Doctor's round: read what the system tells, measure what it does not, keep what came of it.

    others' load ─► readings ─► probes without torch ─► probes with it ─► steal, swap

No probe can end it: one that fails is told as not measured, with the reason. Nor does Ctrl-C lose
what is known by then.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from paceline.diagnose.doctor.facts import Facts, Load, Unmeasured
from paceline.doctor import load, processor, system
from paceline.doctor.asked import Asked
from paceline.doctor.child import Child, NotMeasured
from paceline.doctor.probes import PROBES, Probe

LOOK = 1.0  # seconds, to see what others do
QUICK_LOOK = 0.3
IMPORT = 2.0  # seconds that torch takes to be there

Told = Callable[[str, float], None]  # what is measured now, and what part of all is done


def examine(asked: Asked, told: Told = lambda what, done: None) -> Facts:
    """All there is to know, in about half a minute, or in seconds if `asked` to be quick."""
    return _Round(asked, told).facts()


class _Round:
    def __init__(self, asked: Asked, told: Told) -> None:
        self._asked = asked
        self._told = told
        self._found: dict[str, Any] = {}
        self._unmeasured: list[Unmeasured] = []
        self._probes = [probe for probe in PROBES if probe.name != "peer" or asked.peer]
        self._done = 0.0

    def facts(self) -> Facts:
        began, before, swapped = time.monotonic(), load.ticks(), system.pages_swapped()
        complete, busy = False, None
        try:
            self._told("what else runs here", 0.0)
            self._readings()
            cores = self._found.get("cores")
            if cores is not None:
                busy = load.busy_cores(QUICK_LOOK if self._asked.quick else LOOK, cores.logical)
            self._measure([probe for probe in self._probes if not probe.torch])
            self._measure([probe for probe in self._probes if probe.torch])
            complete = True
        except KeyboardInterrupt:
            known = {*self._found, *(each.probe for each in self._unmeasured)}
            self._unmeasured += [
                Unmeasured(probe=probe.name, reason="interrupted")
                for probe in self._probes
                if probe.name not in known
            ]
        self._read("memory", lambda: system.memory(swapped=swapped))
        cores, gpus = (self._found.pop(name, ()) for name in ("core_speed", "gpu_speed"))
        return Facts(
            **self._found,
            load=Load(busy_cores=busy, steal=load.steal(before, load.ticks())),
            equality=(*cores, *gpus),
            unmeasured=self._unmeasured,
            seconds=time.monotonic() - began,
            complete=complete,
        )

    def _readings(self) -> None:
        """What the system tells at once."""
        self._read("host", system.host)
        self._read("cores", processor.cores)
        self._read("caches", lambda: tuple(processor.caches()))
        self._read("pages", system.pages)
        self._read("limits", system.limits)
        self._read("versions", system.versions)

    def _read(self, name: str, read: Callable[[], Any]) -> None:
        try:
            self._found[name] = read()
        except Exception as wrong:  # noqa: BLE001 - a kernel may tell anything, or nothing
            self._miss(name, str(wrong) or type(wrong).__name__)

    def _measure(self, probes: Sequence[Probe]) -> None:
        """In a child; if that dies of one of them, the others go on in another."""
        left = list(probes)
        while left:
            child = Child(left, self._asked)
            try:
                self._hear(child, left)
            finally:
                child.close()

    def _hear(self, child: Child, left: list[Probe]) -> None:
        """Take what comes until all is here or the child is gone; `left` is what is to come."""
        while left:
            probe = left[0]
            self._told(probe.title, self._done / sum(map(self._cost, self._probes)))
            try:
                self._found[probe.name] = child.next(probe)
            except NotMeasured as wrong:
                self._miss(probe.name, str(wrong))
                over = wrong.over
            else:
                over = False
            left.pop(0)
            self._done += self._cost(probe)
            if over:
                return

    def _cost(self, probe: Probe) -> float:
        """About how many seconds it takes."""
        gpus = self._found.get("gpus")
        if probe.name == "gpu_speed" and not (gpus and gpus.devices):
            return 0.0
        return probe.length(self._asked.quick) + (IMPORT if probe.name == "torch" else 0.0)

    def _miss(self, name: str, reason: str) -> None:
        self._unmeasured.append(Unmeasured(probe=name, reason=reason.rstrip(".")))
