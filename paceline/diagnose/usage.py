"""What roles and hosts used in a window of time, from the samples of it. Arithmetic alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from paceline.diagnose.counters import Rate, Value, Window, by, level, rate
from paceline.types import Gpu, HostResources, Resources, Traffic


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleUse:
    """CPU and delay are seconds a second: cores that it had, and that it could have used."""

    role: str
    seconds: float  # between the first sample and the last
    cpu: Rate | None
    delay: Rate | None
    voluntary: Rate | None
    involuntary: Rate | None
    major_faults: Rate | None
    read: Rate | None  # bytes
    written: Rate | None
    sent: Rate | None
    received: Rate | None
    memory_bytes: int  # the most
    threads: int | None  # the most
    traffic: tuple[Traffic, ...] = ()  # by peer, in the window


class NicUse(NamedTuple):
    """Bytes; `speed` is Mbit/s, where the interface knows."""

    sent: Rate | None
    received: Rate | None
    speed: int | None


class DiskUse(NamedTuple):
    """Bytes, and what part of the time it was busy."""

    read: Rate | None
    written: Rate | None
    busy: Rate | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuUse:
    """Means over the samples, and what was highest. Clocks are also told as a part of the most."""

    index: int
    uuid: str
    name: str
    utilisation: Rate | None  # percent
    memory_used: int | None  # the most
    memory_total: int | None
    sm_clock: Rate | None  # MHz
    sm_share: float | None  # the mean, of the most it could be
    memory_clock: Rate | None
    memory_share: float | None
    power: Rate | None  # watts
    power_limit: float | None
    temperature: Rate | None
    slowed: Mapping[str, float]  # why, and in what part of the samples


@dataclass(frozen=True, slots=True, kw_only=True)
class HostUse:
    """Of everything on the host. Shares are of one core, or of the time."""

    host: str
    seconds: float
    cores: tuple[Rate | None, ...]  # what part of each was busy
    iowait: Rate | None  # of all cores together, in cores
    steal: Rate | None
    running: Rate | None  # threads that ran or could
    load: float | None  # the last
    memory_available: int | None  # the least
    swap_used: int | None  # the most
    swapped_in: Rate | None  # bytes
    swapped_out: Rate | None
    nics: Mapping[str, NicUse]
    disks: Mapping[str, DiskUse]
    pressure: Mapping[str, Rate | None]  # what part of the time something waited
    gpus: tuple[GpuUse, ...]


def roles_used(samples: Iterable[Resources], window: Window | None = None) -> dict[str, RoleUse]:
    """By role; those with fewer than two samples are not told of."""
    found = by(samples, lambda sample: sample.role, window)
    return {role: _role(role, some) for role, some in found.items()}


def hosts_used(
    samples: Iterable[HostResources], window: Window | None = None
) -> dict[str, HostUse]:
    """By host; those with fewer than two samples are not told of."""
    found = by(samples, lambda sample: sample.host, window)
    return {host: _host(host, some) for host, some in found.items()}


def _role(role: str, some: Sequence[Resources]) -> RoleUse:
    return RoleUse(
        role=role,
        seconds=some[-1].time - some[0].time,
        cpu=_rate(some, lambda s: s.cpu_seconds),
        delay=_rate(some, lambda s: s.delay_seconds),
        voluntary=_rate(some, lambda s: s.voluntary),
        involuntary=_rate(some, lambda s: s.involuntary),
        major_faults=_rate(some, lambda s: s.major_faults),
        read=_rate(some, lambda s: s.read_bytes),
        written=_rate(some, lambda s: s.written_bytes),
        sent=_rate(some, lambda s: s.sent),
        received=_rate(some, lambda s: s.received),
        memory_bytes=max(s.memory_bytes for s in some),
        threads=max((s.threads for s in some if s.threads is not None), default=None),
        traffic=_traffic(some),
    )


def _rate(some: Sequence[Resources], value: Value[Resources]) -> Rate | None:
    return rate(some, value, anew=True)


def _traffic(some: Sequence[Resources]) -> tuple[Traffic, ...]:
    """What each peer had more at the end of the window than at its begin."""
    before, after = ({t.peer: t for t in s.traffic} for s in (some[0], some[-1]))
    return tuple(_more(before.get(peer, Traffic(peer, 0, 0, 0, 0)), t) for peer, t in after.items())


def _more(before: Traffic, after: Traffic) -> Traffic:
    def less(a: int | None, b: int | None) -> int | None:
        return None if b is None else b - a if a is not None and b >= a else b

    sent, received = less(before.sent, after.sent), less(before.received, after.received)
    return Traffic(
        after.peer,
        sent or 0,
        received or 0,
        less(before.messages_sent, after.messages_sent),
        less(before.messages_received, after.messages_received),
    )


def _host(host: str, some: Sequence[HostResources]) -> HostUse:
    last = some[-1]
    available = [s.memory_available for s in some if s.memory_available is not None]
    swap = [s.swap_used for s in some if s.swap_used is not None]
    return HostUse(
        host=host,
        seconds=some[-1].time - some[0].time,
        cores=tuple(rate(some, _core(number)) for number in range(len(last.cores))),
        iowait=rate(some, lambda s: s.iowait_seconds),
        steal=rate(some, lambda s: s.steal_seconds),
        running=level(some, lambda s: s.running),
        load=last.load,
        memory_available=min(available, default=None),
        swap_used=max(swap, default=None),
        swapped_in=rate(some, lambda s: s.swapped_in),
        swapped_out=rate(some, lambda s: s.swapped_out),
        nics={name: _nic(some, name, last.speeds.get(name)) for name in last.nics},
        disks={name: _disk(some, name) for name in last.disks},
        pressure={what: rate(some, _stalled(what)) for what in last.pressure},
        gpus=tuple(_gpu(some, gpu) for gpu in last.gpus),
    )


def _core(number: int) -> Value[HostResources]:
    return lambda s: s.cores[number] if number < len(s.cores) else None


def _stalled(what: str) -> Value[HostResources]:
    return lambda s: s.pressure.get(what)


def _nic(some: Sequence[HostResources], name: str, speed: int | None) -> NicUse:
    own = [s for s in some if name in s.nics]
    sent = rate(own, lambda s: s.nics[name].sent)
    return NicUse(sent, rate(own, lambda s: s.nics[name].received), speed)


def _disk(some: Sequence[HostResources], name: str) -> DiskUse:
    own = [s for s in some if name in s.disks]
    return DiskUse(
        rate(own, lambda s: s.disks[name].read),
        rate(own, lambda s: s.disks[name].written),
        rate(own, lambda s: s.disks[name].busy),
    )


class _At(NamedTuple):
    """A GPU as it was then."""

    time: float
    gpu: Gpu


def _gpu(some: Sequence[HostResources], last: Gpu) -> GpuUse:
    own = [_At(s.time, g) for s in some for g in s.gpus if g.index == last.index]
    sm, memory = level(own, lambda a: a.gpu.sm_clock), level(own, lambda a: a.gpu.memory_clock)
    used = [a.gpu.memory_used for a in own if a.gpu.memory_used is not None]
    whys = [why for a in own for why in a.gpu.slowed]
    return GpuUse(
        index=last.index,
        uuid=last.uuid,
        name=last.name,
        utilisation=level(own, lambda a: a.gpu.utilisation),
        memory_used=max(used, default=None),
        memory_total=last.memory_total,
        sm_clock=sm,
        sm_share=_share(sm, last.sm_clock_max),
        memory_clock=memory,
        memory_share=_share(memory, last.memory_clock_max),
        power=level(own, lambda a: a.gpu.power),
        power_limit=last.power_limit,
        temperature=level(own, lambda a: a.gpu.temperature),
        slowed={why: whys.count(why) / len(own) for why in dict.fromkeys(whys)},
    )


def _share(clock: Rate | None, most: int | None) -> float | None:
    return clock.mean / most if clock is not None and most else None
