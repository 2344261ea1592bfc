"""CPU, memory, switches, disk and traffic of the roles on this host, and the host itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from paceline.measure.clock import Clock
from paceline.measure.gpu import Gpus
from paceline.measure.host import HostMeter
from paceline.measure.meter import Meter
from paceline.measure.proc import Spare
from paceline.types import HostResources, Resources, Traffic


class Moved(NamedTuple):
    """Bytes that a role has sent and received, and the same by peer."""

    sent: int = 0
    received: int = 0
    traffic: tuple[Traffic, ...] = ()


NOTHING_MOVED = Moved()


class Sampler:
    """Samples processes by role, and the host. Cheap enough to do twice a second for every role.

    Memory is the resident set: pages that roles share are counted for each of them.
    """

    def __init__(self, clock: Clock, gpus: Gpus | None = None) -> None:
        self._clock = clock
        self._spare = Spare()
        self._meters: dict[int, Meter] = {}
        self._stopped: set[int] = set()
        self._host = HostMeter(self._spare)
        self._gpus = gpus

    def sample(self, pids: Mapping[str, int], moved: Mapping[str, Moved]) -> list[Resources]:
        """One record for each role whose process lives."""
        self._let_go(pids.values())
        samples = []
        for role, pid in pids.items():
            meter = self._meter(pid)
            told = meter.read() if meter is not None else None
            if told is None:
                continue
            used = told._asdict()
            if used.pop("stopped"):
                self._stopped.add(pid)
            else:
                self._stopped.discard(pid)
            time, by_peer = round(self._clock.now(), 6), moved.get(role, NOTHING_MOVED)
            samples.append(Resources(time=time, role=role, **used, **by_peer._asdict()))
        return samples

    def host(self) -> HostResources:
        return self._host.read(self._clock.now(), self._gpus.now() if self._gpus else ())

    def frozen(self, pid: int) -> bool:
        """Whether a process was stopped when it was last sampled."""
        return pid in self._stopped

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
            self._stopped.discard(pid)

    def close(self) -> None:
        self._let_go(())
        self._host.close()
        if self._gpus is not None:
            self._gpus.close()
