"""CPU, memory and traffic of the roles on this host."""

from __future__ import annotations

from collections.abc import Mapping

from paceline.measure.clock import Clock
from paceline.measure.process import Process
from paceline.types import Resources


class Sampler:
    """Samples processes by role. Cheap enough to call a few times a second for every role.

    Memory is the resident set: pages that roles share are counted for each of them.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: dict[int, Process] = {}

    def sample(
        self, pids: Mapping[str, int], traffic: Mapping[str, tuple[int, int]]
    ) -> list[Resources]:
        """One record for each role whose process lives; `traffic` is bytes (sent, received)."""
        samples = []
        for role, pid in pids.items():
            usage = self._usage(pid)
            if usage is None:
                continue
            cpu_seconds, memory_bytes = usage
            sent, received = traffic.get(role, (0, 0))
            samples.append(
                Resources(
                    time=self._clock.now(),
                    role=role,
                    cpu_seconds=cpu_seconds,
                    memory_bytes=memory_bytes,
                    sent=sent,
                    received=received,
                )
            )
        return samples

    def state(self, pid: int) -> str:
        """What keeps a process from running, if something does: as `Process.state`."""
        known = self._process(pid)
        return known.state if known is not None else ""

    def cpu_seconds(self, pid: int) -> float | None:
        """What a process has used so far."""
        usage = self._usage(pid)
        return usage[0] if usage is not None else None

    def _usage(self, pid: int) -> tuple[float, int] | None:
        known = self._process(pid)
        return known.usage() if known is not None else None

    def _process(self, pid: int) -> Process | None:
        if pid not in self._known:
            try:
                self._known[pid] = Process(pid)
            except ProcessLookupError:
                return None
        return self._known[pid]
