"""Numbers that several causes tell, with where they come from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from paceline.diagnose.evidence import Evidence
from paceline.diagnose.finding import Confidence, Fact, lower
from paceline.diagnose.usage import HostUse

FEW, SOME = 8, 30  # steps of each worker
BRIEF = 1.0  # seconds: counters are sampled twice in one
OTHERS = 0.25  # cores
STEAL = 0.1  # of all cores


def time_in(e: Evidence, what: str, *spans: str) -> Fact:
    named = [span for span in spans if e.path.get(span)]
    return Fact(what, 100 * e.share(*spans), "%", f"steps: {', '.join(named) or spans[0]}")


def cores_used(e: Evidence) -> float | None:
    """By all roles together."""
    uses = [part.use for part in e.parts]
    known = [use.cpu.mean for use in uses if use and use.cpu]
    return sum(known) if known else None


def busy_cores(host: HostUse, usable: Collection[int] | None = None) -> float:
    """Of all its cores, or of those that the run may use."""
    return sum(
        core.mean
        for number, core in enumerate(host.cores)
        if core and (usable is None or number in usable)
    )


def others_use(e: Evidence) -> float:
    """Cores that other processes had, of those the run may use, on the host where they had most."""
    found = 0.0
    for name, host in e.hosts.items():
        here = [p.use for p in (*e.parts, *e.beside) if p.host in (name, None)]
        own = sum(use.cpu.mean for use in here if use and use.cpu)
        found = max(found, busy_cores(host, e.usable) - own)
    return max(0.0, found)


def idle_cores(e: Evidence) -> float | None:
    """Cores that nobody used, of those that the run may use."""
    used = cores_used(e)
    if e.cores is None or used is None:
        return None
    beside = sum(part.use.cpu.mean for part in e.beside if part.use and part.use.cpu)
    return max(0.0, e.cores - used - beside - others_use(e))


def trust(e: Evidence) -> tuple[Confidence, str]:
    """How far numbers of this run can be trusted at all, and why."""
    level: Confidence = "high"
    why = [f"{e.steps:.0f} steps of each worker in {e.seconds:.1f} s"]
    if e.steps < SOME or e.seconds < BRIEF:
        level = lower(level, "low" if e.steps < FEW else "medium")
        why.append("which is short")
    if (others := others_use(e)) > OTHERS:
        level = lower(level, "medium")
        why.append(f"other processes had {others:.1f} cores meanwhile")
    stolen = [host.steal.mean / max(1, len(host.cores)) for host in e.hosts.values() if host.steal]
    if (most := max(stolen, default=0.0)) > STEAL:
        level = lower(level, "medium")
        why.append(f"whatever this machine runs on took {100 * most:.0f} % of its cores")
    return level, ", ".join(why)


def listed(roles: Sequence[str]) -> str:
    """`worker-0`, `worker-0 and worker-1`, `4 workers and 1 server`"""
    if len(roles) < 3:
        return " and ".join(roles)
    kinds = Counter(role.partition("-")[0] for role in roles)
    return " and ".join(f"{n} {kind}{'' if n == 1 else 's'}" for kind, n in kinds.items())
