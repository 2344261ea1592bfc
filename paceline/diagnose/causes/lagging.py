"""A worker that the others wait for, by when each arrives at the exchange."""

from __future__ import annotations

from paceline.diagnose.causes.facts import listed, trust
from paceline.diagnose.evidence import COMPUTE, INPUT, Evidence, WorkerPart
from paceline.diagnose.finding import Advice, Fact, Finding
from paceline.diagnose.gains import between, fixed_computing, gone


def straggler(e: Evidence, share: float) -> Finding | None:
    """Balanced shares have all arrive together. With tᵢ the time of worker i for its batch,

        t = N / Σ 1/tᵢ,        and at least the straggler's own fixed cost of a step

    of which a short run may have half, since shares have to be found first. Where nobody waits for
    anybody each goes at its own pace, Σ 1/tᵢ in all.
    """
    late = e.straggler
    if late is None:
        return None
    level, why = trust(e)
    mine = next((w for w in e.workers if w.role == late.role), None)
    others = [w for w in e.workers if w.role not in late.roles]
    names, one = listed(late.roles), len(late.roles) == 1
    facts = [
        Fact(f"rounds in which {names} is last", 100 * late.share, "%", "steps: arrival"),
        Fact("later than the last of the others", 1e3 * late.late_seconds, "ms", "steps: arrival"),
        Fact(f"time that others wait for {names}", 100 * share, "%", "steps: arrival"),
    ]
    why_late = ""
    if mine is not None and others:
        facts += _beside(mine, others)
        if reason := _reason(mine, others):
            why_late = f": {'it' if one else mine.role} {reason}"
    which = "which" if one else "one of which"
    return Finding(
        cause="straggler",
        share=share,
        sentence=f"all wait {100 * share:.0f} % of the time for {names}, {which} arrives last in "
        f"{100 * late.share:.0f} % of rounds{why_late}",
        roles=late.roles,
        facts=tuple(facts),
        advice=_advice(e, share, late.roles),
        confidence=level,
        why=why,
    )


def _own(worker: WorkerPart) -> float:
    return worker.share(*COMPUTE, *INPUT)


def _beside(mine: WorkerPart, others: list[WorkerPart]) -> list[Fact]:
    facts = []
    for what, spans in (("computing", COMPUTE), ("waiting for samples", INPUT)):
        here = mine.share(*spans)
        there = sum(w.share(*spans) for w in others) / len(others)
        if max(here, there) > 0.02:
            source = f"steps: {spans[0]}"
            facts.append(Fact(f"{mine.role} {what}", 100 * here, "%", source))
            facts.append(Fact(f"others {what}", 100 * there, "%", source))
    return facts


def _reason(mine: WorkerPart, others: list[WorkerPart]) -> str:
    """By which of its parts it takes longer than the others do."""
    found = ""
    most = 0.0
    for what, spans in (("computes", COMPUTE), ("waits for samples", INPUT)):
        here = mine.share(*spans)
        there = sum(w.share(*spans) for w in others) / len(others)
        if here - there > max(most, 0.02):
            most = here - there
            found = f"{what} {here / there:.1f} times as long" if there > 0 else ""
    return found


def _advice(e: Evidence, share: float, slow: tuple[str, ...]) -> tuple[Advice, ...]:
    own, crew, few = e.share(*COMPUTE, *INPUT), len(e.workers), len(slow)
    advice = []
    if e.spec.kind.pooled and 0 < share < own and crew > 1:
        others = own - share
        together = crew / ((crew - few) / others + few / own)
        least = max((together + own) / 2, fixed_computing(e) * own)
        rest = 1.0 - own
        if "balance" in e.spec.kind.options and not e.spec.backup:
            gain = between(e, 1 / (rest + least), 1 / (rest + together))
            text = "--balance: shares of the batch by speed, so that all arrive together"
            advice.append(Advice(text=text, gain=gain, changes={"balance": True}))
        if e.spec.kind.served:

            def apace(rest: float) -> float:
                return ((crew - few) / (rest + others) + few / (rest + own)) / crew

            text = "--strategy ps-async: nobody waits for anybody, at the price of staleness"
            changes = {"strategy": "ps-async", "balance": False, "backup": 0}
            gain = between(e, apace(2 * rest), apace(rest))
            advice.append(Advice(text=text, gain=gain, changes=changes))
    elif e.spec.strategy == "ssp":
        text = "--strategy ps-async: nobody waits for anybody, at the price of staleness"
        gain = between(e, 1.0, gone(share))
        changes = {"strategy": "ps-async", "bound": None}
        advice.append(Advice(text=text, gain=gain, changes=changes))
    advice.append(
        Advice(
            text=f"see what else runs where {listed(slow)} does, or move it"
            if few == 1
            else f"see what else runs where {listed(slow)} do, or move them",
            gain=between(e, gone(share / 2), gone(share)),
        )
    )
    return tuple(advice)
