"""Cores and memory that are too few: for threads, for roles, for pages."""

from __future__ import annotations

from paceline.diagnose.causes.facts import OTHERS, cores_used, listed, others_use, trust
from paceline.diagnose.evidence import MOTION, Evidence
from paceline.diagnose.finding import Advice, Fact, Finding
from paceline.diagnose.gains import between, gone
from paceline.diagnose.split import memory_stall, starved


def threads(e: Evidence, share: float) -> Finding:
    """Each worker has more torch threads than cores.

    A layer ends when its last thread has had its turn: with t threads a core that takes t turns,
    and each of them is t times as long as it would be alone. So at most t² is lost.
    """
    level, why = trust(e)
    crew, own, cores = len(e.workers), e.threads or 1, e.cores or 1
    right = max(1, cores // crew)
    crowded = own * crew / cores
    return Finding(
        cause="threads",
        share=share,
        sentence=f"{own * crew} threads take turns on {cores} cores: of the time in which they "
        f"could run, {100 * starved(e):.0f} % is spent waiting for a core",
        roles=tuple(w.role for w in e.workers),
        facts=(
            Fact("torch threads of each worker", own, "", "roles: threads"),
            *_short(e),
        ),
        advice=(
            Advice(
                text=f"--threads {right}: as many as there are cores for each worker",
                gain=between(e, gone(share), max(gone(share), crowded**2)),
                changes={"threads": right},
            ),
        ),
        confidence=level,
        why=why,
    )


def cores(e: Evidence, share: float) -> Finding:
    """Roles, or something else on the host, take turns on the cores."""
    level, why = trust(e)
    crew, others = len(e.workers) + len(e.servers) + e.standbys, others_use(e)
    there = e.cores or 1
    told = listed([p.role for p in e.parts])
    if others > OTHERS:
        told += f" and other processes, which have {others:.1f} cores,"
    advice = []
    if e.servers and one_host(e):
        advice.append(onto_shared_memory(e, gone(share), gone(share + e.share(*MOTION))))
    if others > OTHERS:
        advice.append(
            Advice(
                text="end what else runs on this host, or run elsewhere",
                gain=between(e, 1.0, gone(share)),
            )
        )
    fit = max(1, there - len(e.servers) - e.standbys)
    if fit < len(e.workers):
        text = f"--workers {fit}: a core for each role"
        gain = between(e, 1.0, gone(share))
        advice.append(Advice(text=text, gain=gain, changes={"workers": fit}))
    advice.append(
        Advice(text="more cores, or another host", gain=between(e, gone(share / 2), gone(share)))
    )
    return Finding(
        cause="cores",
        share=share,
        sentence=f"{told} take turns on {there} core{'' if there == 1 else 's'}, and wait "
        f"{100 * share:.0f} % of the time for their turn",
        roles=tuple(p.role for p in e.parts),
        facts=_short(e),
        advice=tuple(advice[:3]),
        confidence=level,
        why=why,
        against=(
            (f"only {crew} roles for {there} cores: who else had them is not known",)
            if crew <= there and others <= OTHERS
            else ()
        ),
    )


def _short(e: Evidence) -> tuple[Fact, ...]:
    uses = [p.use for p in e.parts if p.use]
    delay = sum(use.delay.mean for use in uses if use.delay)
    switches = sum(use.involuntary.mean for use in uses if use.involuntary)
    facts = [
        Fact("cores that the run may use", e.cores or 0, "cores", "spec.json: host"),
        Fact("cores that roles used", cores_used(e) or 0.0, "cores", "CPU of each role"),
        Fact("more that they could have used", delay, "cores", "run-queue delay of each role"),
        Fact("times a core was taken from them", switches, "/s", "involuntary switches"),
    ]
    return tuple(facts)


def one_host(e: Evidence) -> bool:
    return len({part.host for part in e.parts}) == 1


def onto_shared_memory(e: Evidence, low: float, high: float) -> Advice:
    """Where all roles are on one host: servers then live inside the workers."""
    return Advice(
        text="--transport shm: on one host nothing has to be sent, and servers need no core",
        gain=between(e, low, high),
        changes={"transport": "shm", "codec": "none", "tls": False, "port": 0, "replicas": 0},
    )


def memory(e: Evidence, share: float) -> Finding:
    """Pages come and go, and something waits for them."""
    level, why = trust(e)
    facts = [Fact("time something waited for memory", 100 * memory_stall(e), "%", "host: pressure")]
    for name, host in e.hosts.items():
        moved = [rate.mean for rate in (host.swapped_in, host.swapped_out) if rate]
        if any(moved):
            facts.append(Fact("swapped in and out", sum(moved) / 1e6, "MB/s", f"{name}: vmstat"))
        if host.memory_available is not None:
            left = host.memory_available / 1e6
            facts.append(Fact("least memory that was free", left, "MB", f"{name}: meminfo"))
    faults = sum(w.use.major_faults.mean for w in e.workers if w.use and w.use.major_faults)
    facts.append(Fact("pages that came from disk", faults, "/s", "major faults of workers"))
    gain = between(e, 1.0, gone(share))
    advice = []
    if e.spec.batch and e.spec.batch > 1 and e.spec.batch % 2 == 0:
        half = {"batch": e.spec.batch // 2, "accumulate": 2 * e.spec.accumulate}
        text = f"--batch {half['batch']} --accumulate {half['accumulate']}: the same step in less"
        advice.append(Advice(text=text, gain=gain, changes=half))
    if len(e.workers) > 1:
        fewer = len(e.workers) - 1
        text = f"--workers {fewer}: each needs memory of its own"
        advice.append(Advice(text=text, gain=gain, changes={"workers": fewer}))
    advice.append(Advice(text="more memory, or end what else is using it", gain=gain))
    return Finding(
        cause="memory",
        share=share,
        sentence=f"memory is short: roles wait {100 * share:.0f} % of the time for pages that are "
        "not there",
        roles=tuple(w.role for w in e.workers),
        facts=tuple(facts),
        advice=tuple(advice),
        confidence=level,
        why=why,
    )
