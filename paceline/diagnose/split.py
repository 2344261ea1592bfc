"""Where the time of a run went, by cause: every part of it to one cause, so that they add up to 1.

    path                              causes, in this order
    data, copy                     →  straggler, memory, disk, input
    forward, backward              →  straggler, memory, threads or cores, compute
    encode, and the servers' decode→  codec
    push, pull, exchange, wait     →  straggler, threads or cores, server-cpu, server- or
                                      worker-network, small-batch
    update                         →  threads or cores, small-batch, or update where nothing is
                                      exchanged
    evaluation; other              →  evaluation; disk, other

Each takes what its own numbers explain, and no more than is left.
"""

from __future__ import annotations

from paceline.diagnose.evidence import (
    COMPUTE,
    ENCODE,
    EVALUATION,
    INPUT,
    MOTION,
    UPDATE,
    Evidence,
    ServerPart,
)
from paceline.diagnose.usage import HostUse, RoleUse

CAUSES = (
    *("compute", "input", "disk", "straggler", "server-network", "worker-network", "server-cpu"),
    *("small-batch", "update", "threads", "cores", "memory", "codec", "evaluation", "other"),
)

FULL = 0.7  # of a server's time: beyond it, whatever it does is in the way
SHORT = 0.05  # of the time that threads wanted to run: beyond it, cores are short
STALLED = 0.02  # of the time: pressure below that is everyday life
# What a message and a byte cost where nothing is wrong, with a server written in Python; a network
# is blamed if an exchange takes several times that.
MESSAGE = 0.5e-3  # seconds
BYTE = 1e-9
ODD = 3.0
HALF, QUARTER = 0.5, 0.25  # of a straggler's lateness, of exchanging


def split(e: Evidence) -> dict[str, float]:
    """By cause, the share of the time; {} if no time was recorded."""
    if not e.path:
        return {}
    found = dict.fromkeys(CAUSES, 0.0)
    data, compute = e.share(*INPUT), e.share(*COMPUTE)
    motion, update = e.share(*MOTION), e.share(UPDATE)
    found["evaluation"] = e.share(EVALUATION)
    found["codec"] = e.share(ENCODE)
    other = max(0.0, 1.0 - data - compute - motion - update - e.share(EVALUATION, ENCODE))

    near, far = lateness(e)
    if e.spec.kind.pooled:  # the path is that of whoever comes last: it is late by what it did
        near = min(near, data + compute)
        data, compute = _less(near, data, compute)
    else:  # the path is everybody's: others wait
        near = min(near, motion)
        motion -= near
    far = min(far, motion)
    motion -= far
    found["straggler"], found["worker-network"] = near, far

    stalled = memory_stall(e)
    found["memory"] = stalled * (data + compute + motion + update)
    data, compute, motion, update = (
        (1 - stalled) * part for part in (data, compute, motion, update)
    )

    found["disk"] = min(disk_stall(e), data + other)
    data, other = _less(found["disk"], data, other)
    found["input"], found["other"] = data, other

    crowded, short = "threads" if too_many_threads(e) else "cores", starved(e)
    found[crowded] += short * compute
    found["compute"] = compute - short * compute
    if not e.wired:  # in memory: it is work of their own, and so is what others are waited for
        found[crowded] += short * (motion + update)
        motion, update = (1.0 - short) * motion, (1.0 - short) * update

    _exchange(e, motion, found)
    found["small-batch" if e.exchanges else "update"] += update
    return found


def _less(taken: float, *parts: float) -> tuple[float, ...]:
    """What is left of the parts, where each gave in proportion to what it had."""
    whole = sum(parts)
    left = max(0.0, 1.0 - taken / whole) if whole > 0 else 0.0
    return tuple(left * part for part in parts)


def lateness(e: Evidence) -> tuple[float, float]:
    """What part of the time others wait for the straggler: for what it makes of its batches, and
    for what its connection makes of it."""
    if e.straggler is None:
        return 0.0, 0.0
    own = min(1.0, max(0.0, e.own)) if e.wired else 1.0
    return e.late * own, e.late * (1.0 - own)


def _exchange(e: Evidence, motion: float, found: dict[str, float]) -> None:
    """Share out the time that gradients and parameters took."""
    if not e.exchanges:
        found["other"] += motion
        return

    def take(cause: str, share: float) -> None:
        nonlocal motion
        taken = min(motion, max(0.0, share))
        found[cause] += taken
        motion -= taken

    server = busiest(e)
    if server is not None:
        take("codec", server.share("decode"))
        take("cores", _mean_delay(server.use))
        take("server-cpu", server_work(server))
    if e.wired:
        usual = usual_exchange(e)
        if motion > ODD * usual:
            served = e.spec.kind.served and slow_line(e) is None
            take("server-network" if served else "worker-network", motion - usual)
    found["small-batch"] += motion


def slow_line(e: Evidence) -> str | None:
    """The one worker whose connection is slow: it comes late to rounds, by a good part of what an
    exchange takes, though it works no longer than the others; or, where nobody waits for anybody,
    its exchanges take several times theirs."""
    if e.straggler is not None:
        apart = e.own < HALF and e.late > QUARTER * e.share(*MOTION)
        return e.straggler.role if apart else None
    if e.spec.kind.pooled or len(e.workers) < 2:
        return None
    each = {w.role: w.share(*MOTION) * e.seconds / w.steps for w in e.workers if w.steps}
    ranked = sorted(each, key=each.__getitem__)
    apart = len(ranked) > 1 and each[ranked[-1]] > ODD * each[ranked[-2]]
    return ranked[-1] if apart else None


def busiest(e: Evidence) -> ServerPart | None:
    """The server that has most to do."""
    return max(e.servers, key=lambda server: server.busy or 0.0, default=None)


def server_work(server: ServerPart) -> float:
    """What part of the time workers wait for it because of what it does itself."""
    busy = server.busy or 0.0
    if busy >= FULL:
        return busy - server.share("decode")
    return server.share("apply")


def usual_exchange(e: Evidence) -> float:
    """What part of the time an exchange of so many messages and bytes takes at its usual speed."""
    if e.seconds <= 0:
        return 1.0
    messages, moved = a_step(e)
    together = len(e.workers) if e.spec.kind.served else 1  # a server takes one after the other
    return min(1.0, e.steps * together * (MESSAGE * messages + BYTE * moved) / e.seconds)


def a_step(e: Evidence) -> tuple[float, float]:
    """Messages and bytes of one step of one worker, both ways: as counted, else as they must be."""
    least, size = 2.0 * max(1, len(e.servers)), 8.0 * (e.parameters or 0)
    told = [w for w in e.workers if w.use and w.use.traffic and w.steps]
    if not told:
        return least, size
    peers = [t for w in told if w.use for t in w.use.traffic if t.peer != "supervisor"]
    messages = sum((t.messages_sent or 0) + (t.messages_received or 0) for t in peers)
    steps = sum(worker.steps for worker in told)
    return max(messages / steps, least), sum(t.sent + t.received for t in peers) / steps


def starved(e: Evidence) -> float:
    """Of the time in which workers' threads could have run, what part they had no core."""
    uses = [worker.use for worker in e.workers if worker.use]
    had = sum(use.cpu.mean for use in uses if use.cpu)
    short = sum(use.delay.mean for use in uses if use.delay)
    part = short / (had + short) if had + short > 0 else 0.0
    return part if part >= SHORT else 0.0


def too_many_threads(e: Evidence) -> bool:
    """Threads outnumber cores though workers do not."""
    crew = len(e.workers)
    return bool(e.cores and e.threads and e.threads > 1 and crew <= e.cores < e.threads * crew)


def _mean_delay(use: RoleUse | None) -> float:
    return use.delay.mean if use and use.delay and use.delay.mean >= SHORT else 0.0


def memory_stall(e: Evidence) -> float:
    """What part of the time something waited for memory; only where pages came and went.

    A kernel that does not tell how long tells at least for how long cores waited for disks.
    """
    found = 0.0
    for host in e.hosts.values():
        moved = _rate(host.swapped_in) + _rate(host.swapped_out)
        faults = sum(_rate(w.use.major_faults) for w in e.workers if w.use and w.host == host.host)
        if moved or faults:
            told = _pressure(host, "memory")
            found = max(found, _waiting(host) if told is None else told)
    return found if found >= STALLED else 0.0


def disk_stall(e: Evidence) -> float:
    """What part of the time something waited for a disk."""
    found = 0.0
    for host in e.hosts.values():
        told = _pressure(host, "io")
        found = max(found, _waiting(host) if told is None else told)
    return found if found >= STALLED else 0.0


def _pressure(host: HostUse, what: str) -> float | None:
    """What part of the time something waited for it, where the kernel tells."""
    told = host.pressure.get(what)
    return None if told is None else min(1.0, told.mean)


def _waiting(host: HostUse) -> float:
    """The same of disks, by their own word and that of the cores, whichever says less."""
    busy = max((_rate(disk.busy) for disk in host.disks.values()), default=0.0)
    return min(1.0, busy, _rate(host.iowait))


def _rate(value: tuple[float, float] | None) -> float:
    return value[0] if value is not None else 0.0
