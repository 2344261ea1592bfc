"""Samples that come too slowly: from whoever makes batches, or from a disk."""

from __future__ import annotations

from paceline.diagnose.causes.facts import cores_used, idle_cores, time_in, trust
from paceline.diagnose.causes.working import rarer
from paceline.diagnose.evidence import COPY, INPUT, KEEPING, OTHER, Evidence
from paceline.diagnose.finding import Advice, Fact, Finding, lower
from paceline.diagnose.gains import between, gone
from paceline.spec.runspec import SEVERAL


def input_pipeline(e: Evidence, share: float) -> Finding:
    """Workers wait for batches, and no disk explains it."""
    level, why = trust(e)
    roles = tuple(w.role for w in e.workers if w.share(*INPUT) >= share / 2)
    facts = [time_in(e, "time spent waiting for samples", *INPUT)]
    facts += [
        Fact(f"of {w.role}", 100 * w.share(*INPUT), "%", "its steps: data") for w in e.workers
    ]
    gain = between(e, gone(share / 2), gone(share))
    to_device = 2 * e.share(COPY) > e.share(*INPUT)
    what = "for batches on their way to the device" if to_device else "for samples"
    text = (
        "make samples smaller: fewer bytes have to go there"
        if to_device
        else "make batches cheaper: prepare samples once instead of at every step"
    )
    more = () if to_device else _more_loaders(e, share)
    return Finding(
        cause="input",
        share=share,
        sentence=f"workers wait {100 * share:.0f} % of their time {what}; "
        "faster batches would help, another exchange would not",
        roles=roles,
        facts=tuple(facts),
        advice=(Advice(text=text, gain=gain), *more),
        confidence=level,
        why=why,
    )


def _more_loaders(e: Evidence, share: float) -> tuple[Advice, ...]:
    """Each worker makes its own batches; that helps if there is a core for it, and if what they
    wait for is not one thing for all."""
    idle, used, crew = idle_cores(e), cores_used(e), len(e.workers)
    if idle is None or used is None or not crew or idle < used:
        return ()
    several = {"strategy": SEVERAL} if e.spec.strategy == "single" else {}
    return (
        Advice(
            text=f"--workers {2 * crew}: each makes its own batches, and {idle:.1f} cores are idle",
            gain=between(e, 1.0 + share / 2, 2.0),
            changes={"workers": 2 * crew, **several},
        ),
    )


def disk(e: Evidence, share: float) -> Finding:
    """Something waits for a disk, and workers for samples or between steps."""
    level, why = trust(e)
    facts = [time_in(e, "time spent waiting for samples", *INPUT)]
    for name, host in e.hosts.items():
        if pressure := host.pressure.get("io"):
            source = f"{name}: pressure of io"
            facts.append(Fact("time something waited for disks", 100 * pressure.mean, "%", source))
        for device, use in host.disks.items():
            if use.busy and use.busy.mean > 0.05:
                told = f"{name}: {device}"
                facts.append(Fact(f"{device} busy", 100 * min(1.0, use.busy.mean), "%", told))
            if use.read and use.read.mean > 1e5:
                source = f"{name}: {device}"
                facts.append(Fact(f"read from {device}", use.read.mean / 1e6, "MB/s", source))
    advice = [
        Advice(
            text="put the data on a faster disk, or have memory enough that it stays there",
            gain=between(e, gone(share / 2), gone(share)),
        )
    ]
    if e.share(*KEEPING, OTHER) > e.share(*INPUT):
        advice = [*rarer(e, share), *advice]
    return Finding(
        cause="disk",
        share=share,
        sentence=f"workers wait {100 * share:.0f} % of their time for a disk; "
        "a faster one would help, more workers on it would not",
        roles=tuple(w.role for w in e.workers),
        facts=tuple(facts),
        advice=tuple(advice),
        confidence=lower(level, "medium"),
        why=f"{why}, and who waits for disks is known of the host, not of each role",
    )
