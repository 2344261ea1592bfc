"""What roles and hosts used, as the summary tells it: megabytes, percent, means and peaks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from paceline.diagnose.counters import Rate, grown
from paceline.diagnose.usage import DiskUse, GpuUse, HostUse, NicUse, RoleUse
from paceline.types import Resources, Traffic

MEGA = 1e6
PERCENT = 100.0


def role_used(use: RoleUse | None, samples: Sequence[Resources]) -> dict[str, Any]:
    """CPU and delay are of training, everything else of the whole run and of all lives."""

    def total(value: Callable[[Resources], int | None]) -> int | None:
        return grown(samples, value)

    def most(value: Callable[[Resources], int | None]) -> int | None:
        return max((v for s in samples if (v := value(s)) is not None), default=None)

    return {
        "cpu_pct": _mean(use.cpu if use else None, PERCENT),
        "delay_pct": _mean(use.delay if use else None, PERCENT),
        "threads": most(lambda s: s.threads),
        "memory_mb": megabytes(most(lambda s: s.memory_bytes)),
        "peak_memory_mb": megabytes(most(lambda s: s.peak_bytes)),
        "context_switches": {
            "voluntary": total(lambda s: s.voluntary),
            "involuntary": total(lambda s: s.involuntary),
        },
        "major_faults": total(lambda s: s.major_faults),
        "read_mb": megabytes(total(lambda s: s.read_bytes)),
        "written_mb": megabytes(total(lambda s: s.written_bytes)),
    }


def megabytes(count: int | None) -> float | None:
    return None if count is None else count / MEGA


def matrix(
    roles: Iterable[Mapping[str, Any]], samples: Iterable[Resources]
) -> dict[str, list[dict[str, Any]]]:
    """By role, what it gave to each peer and took from it; last what it said to the supervisor.

    A server that lives inside a worker has what workers say they gave to it and took from it.
    """
    sampled = {sample.role: sample.traffic for sample in samples}
    found: dict[str, dict[str, Traffic]] = {}
    for role in roles:
        last = {t.peer: t for t in sampled.get(role["role"], ())}
        told = [Traffic(*of) for of in (role.get("report") or {}).get("traffic", ())]
        known = {t.peer: t for t in told}
        found[role["role"]] = {**known, **{p: t for p, t in last.items() if p not in known}}
    for role in roles:
        if role.get("inside"):
            mine = role["role"]
            found[mine] = {
                peer: _other_end(peer, own[mine]) for peer, own in found.items() if mine in own
            }
    return {role: [_traffic(t) for t in peers.values()] for role, peers in found.items()}


def _other_end(peer: str, t: Traffic) -> Traffic:
    return Traffic(peer, t.received, t.sent, t.messages_received, t.messages_sent)


def _traffic(t: Traffic) -> dict[str, Any]:
    return {
        "peer": t.peer,
        "sent_mb": t.sent / MEGA,
        "received_mb": t.received / MEGA,
        "messages_sent": t.messages_sent,
        "messages_received": t.messages_received,
    }


def host_used(
    use: HostUse, usable: Sequence[int] | None, gpus_of: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    """While the run trained. `gpus_of` says which roles train on a GPU, by its UUID."""
    cores = [(number, core) for number, core in enumerate(use.cores) if core is not None]
    of_all = PERCENT / max(1, len(cores))
    return {
        "host": use.host,
        "seconds": use.seconds,
        "cores": [{"core": number, **(_both(core, PERCENT) or {})} for number, core in cores],
        "usable": list(usable) if usable is not None else None,
        "iowait_pct": _both(use.iowait, of_all),
        "steal_pct": _both(use.steal, of_all),
        "running": _both(use.running),
        "load": use.load,
        "memory_available_mb": megabytes(use.memory_available),
        "swap_used_mb": megabytes(use.swap_used),
        "swapped_in_mb_s": _both(use.swapped_in, 1 / MEGA),
        "swapped_out_mb_s": _both(use.swapped_out, 1 / MEGA),
        "nics": [_nic(name, nic) for name, nic in use.nics.items()],
        "disks": [_disk(name, disk) for name, disk in use.disks.items()],
        "pressure_pct": {what: _both(share, PERCENT) for what, share in use.pressure.items()},
        "gpus": [_gpu(gpu, gpus_of.get(gpu.uuid, ())) for gpu in use.gpus],
    }


def _nic(name: str, nic: NicUse) -> dict[str, Any]:
    return {
        "name": name,
        "speed_mbit": nic.speed,
        "sent_mb_s": _both(nic.sent, 1 / MEGA),
        "received_mb_s": _both(nic.received, 1 / MEGA),
    }


def _disk(name: str, disk: DiskUse) -> dict[str, Any]:
    return {
        "name": name,
        "read_mb_s": _both(disk.read, 1 / MEGA),
        "written_mb_s": _both(disk.written, 1 / MEGA),
        "busy_pct": _both(disk.busy, PERCENT),
    }


def _gpu(gpu: GpuUse, roles: Sequence[str]) -> dict[str, Any]:
    return {
        "index": gpu.index,
        "uuid": gpu.uuid,
        "name": gpu.name,
        "roles": list(roles),
        "utilisation_pct": _both(gpu.utilisation),
        "memory_mb": megabytes(gpu.memory_used),
        "memory_total_mb": megabytes(gpu.memory_total),
        "sm_clock_mhz": _both(gpu.sm_clock),
        "sm_clock_pct": None if gpu.sm_share is None else PERCENT * gpu.sm_share,
        "memory_clock_mhz": _both(gpu.memory_clock),
        "memory_clock_pct": None if gpu.memory_share is None else PERCENT * gpu.memory_share,
        "power_w": _both(gpu.power),
        "power_limit_w": gpu.power_limit,
        "temperature_c": _both(gpu.temperature),
        "slowed_pct": {why: PERCENT * share for why, share in gpu.slowed.items()},
    }


def _mean(rate: Rate | None, by: float) -> float | None:
    return None if rate is None else rate.mean * by


def _both(rate: Rate | None, by: float = 1.0) -> dict[str, float] | None:
    return None if rate is None else {"mean": rate.mean * by, "peak": rate.peak * by}
