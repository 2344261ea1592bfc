"""CPU, memory, switches, disk and traffic of the roles on this host, and the host itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from paceline.measure.clock import Clock
from paceline.measure.gpu import Gpus
from paceline.measure.host import HostMeter
from paceline.measure.meter import Counters, Meter
from paceline.measure.proc import Spare
from paceline.types import HostResources, Own, Resources, Traffic


class Said(NamedTuple):
    """What roles say themselves: bytes sent and received, the same by peer, and of their process
    what they alone know."""

    sent: int = 0
    received: int = 0
    traffic: tuple[Traffic, ...] = ()
    own: Own = Own()


NOTHING = Said()


class Sampler:
    """Samples processes by role, and the host. Cheap enough to do twice a second for every role.

    Memory is the resident set: pages that roles share are counted for each of them.
    """

    def __init__(self, clock: Clock, gpus: Gpus | None = None) -> None:
        self._clock = clock
        self._spare = Spare()
        self._meters: dict[int, Meter] = {}
        self._host = HostMeter(self._spare)
        self._gpus = gpus

    def sample(self, pids: Mapping[str, int], said: Mapping[str, Said]) -> list[Resources]:
        """One record for each role whose process lives."""
        self._let_go(pids.values())
        samples = []
        for role, pid in pids.items():
            meter = self._meter(pid)
            told = meter.read() if meter is not None else None
            if told is None:
                continue
            samples.append(_record(role, self._clock.now(), told, said.get(role, NOTHING)))
        return samples

    def host(self) -> HostResources:
        return self._host.read(self._clock.now(), self._gpus.now() if self._gpus else ())

    def _meter(self, pid: int) -> Meter | None:
        if pid not in self._meters:
            try:
                self._meters[pid] = Meter(pid, self._spare)
            except ProcessLookupError:
                return None
        return self._meters[pid]

    def _let_go(self, living: Iterable[int]) -> None:
        for pid in self._meters.keys() - set(living):
            self._meters.pop(pid).close()

    def close(self) -> None:
        self._let_go(())
        self._host.close()
        if self._gpus is not None:
            self._gpus.close()


def _record(role: str, now: float, told: Counters, said: Said) -> Resources:
    return Resources(
        time=round(now, 6),
        role=role,
        cpu_seconds=told.cpu_seconds,
        memory_bytes=told.memory_bytes,
        sent=said.sent,
        received=said.received,
        threads=told.threads,
        delay_seconds=told.delay_seconds,
        major_faults=told.major_faults,
        read_bytes=told.read_bytes,
        written_bytes=told.written_bytes,
        voluntary=said.own.voluntary,
        involuntary=said.own.involuntary,
        peak_bytes=said.own.peak_bytes,
        traffic=said.traffic,
    )
