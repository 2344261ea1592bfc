"""What limits a run: the causes ranked by the time they cost, in words and as plain values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from paceline.diagnose.causes.crowding import cores, memory, threads
from paceline.diagnose.causes.exchanging import (
    codec,
    server_cpu,
    server_network,
    small_batch,
    worker_network,
)
from paceline.diagnose.causes.facts import cores_used
from paceline.diagnose.causes.feeding import disk, input_pipeline
from paceline.diagnose.causes.lagging import straggler
from paceline.diagnose.causes.working import NOTHING, compute, evaluation, other, update
from paceline.diagnose.evidence import Evidence
from paceline.diagnose.finding import Advice, Finding, lower
from paceline.diagnose.split import split
from paceline.diagnose.straggler import Straggler
from paceline.errors import SpecError

UNKNOWN = "unknown"
FINDERS: dict[str, Callable[[Evidence, float], Finding | None]] = {
    "compute": compute,
    "input": input_pipeline,
    "disk": disk,
    "straggler": straggler,
    "server-network": server_network,
    "worker-network": worker_network,
    "server-cpu": server_cpu,
    "small-batch": small_batch,
    "update": update,
    "threads": threads,
    "cores": cores,
    "memory": memory,
    "codec": codec,
    "evaluation": evaluation,
    "other": other,
}
NOTABLE = 0.05  # of the time: less is not worth telling
CLOSE = 0.8  # of the largest: about as much
ADVICE = 3


def weight(cause: str, share: float) -> float:
    """What could be had of a share: all of it, but of computing half, by twice the cores."""
    return share / 2 if cause == "compute" else share


def findings(e: Evidence) -> tuple[Finding, ...]:
    """Every cause that costs a notable part of the time, the one with most to gain first."""
    shares = {c: s for c, s in split(e).items() if s >= NOTABLE}
    ranked = sorted(shares, key=lambda cause: weight(cause, shares[cause]), reverse=True)
    found = (FINDERS[cause](e, shares[cause]) for cause in ranked)
    return tuple(each for each in found if each is not None)


def verdict(e: Evidence) -> dict[str, Any]:
    """`bottleneck`, a `sentence` that names it, the `evidence`, `advice` in sentences, how sure
    that is, and all `findings`, ranked. Values are as JSON has them."""
    found = findings(e)
    if not found:
        sentence = "no worker recorded enough steps, so nothing can be told"
        return {
            "bottleneck": UNKNOWN,
            "sentence": f"{UNKNOWN}: {sentence}.",
            "evidence": _evidence(e),
            "advice": [],
            "roles": [],
            "confidence": "low",
            "why": "there are no steps",
            "conflicts": [],
            "findings": [],
        }
    first = found[0]
    told = [_finding(e, each) for each in found]
    conflicts = [f"{line}." for line in _conflicts(found)]
    level = lower(first.confidence, "medium") if conflicts else first.confidence
    return {
        "bottleneck": first.cause,
        "sentence": _sentence(found),
        "evidence": _evidence(e),
        "advice": [_line(advice) for advice in told[0]["advice"]],
        "roles": list(first.roles),
        "confidence": level,
        "why": first.why,
        "conflicts": conflicts,
        "findings": told,
    }


def _sentence(found: tuple[Finding, ...]) -> str:
    first = found[0]
    sentence = f"{first.cause}: {first.sentence}."
    if first.sentence.startswith(NOTHING):  # is in the way, which is a verdict too
        sentence = f"{first.sentence}.".capitalize()
    second = next((each for each in found[1:] if each.cause not in ("compute", "other")), None)
    if second is not None:
        named = f" ({second.roles[0]})" if len(second.roles) == 1 else ""
        sentence += f" Second: {second.cause}{named}, {100 * second.share:.0f} %."
    return sentence


def _conflicts(found: tuple[Finding, ...]) -> list[str]:
    first = found[0]
    conflicts = list(first.against)
    for other_ in found[1:2]:
        if weight(other_.cause, other_.share) > CLOSE * weight(first.cause, first.share):
            conflicts.append(
                f"{first.cause} and {other_.cause} cost about as much, {100 * first.share:.0f} % "
                f"and {100 * other_.share:.0f} %: which is larger is not sure"
            )
    return conflicts


def _evidence(e: Evidence) -> dict[str, Any]:
    return {
        "shares": dict(e.path),
        "causes": split(e),
        "seconds": e.seconds,
        "steps": e.steps,
        "workers": len(e.workers),
        "servers": len(e.servers),
        "cores": e.cores,
        "cores_used": cores_used(e),
        "straggler": _late(e.straggler) if e.straggler else None,
    }


def _finding(e: Evidence, found: Finding) -> dict[str, Any]:
    return {
        "cause": found.cause,
        "share": found.share,
        "sentence": f"{found.sentence}.",
        "roles": list(found.roles),
        "evidence": [fact._asdict() for fact in found.facts],
        "confidence": found.confidence,
        "why": found.why,
        "against": [f"{line}." for line in found.against],
        "advice": [
            {"text": a.text, "changes": dict(a.changes), "gain": a.gain._asdict()}
            for a in possible(e, found.advice)
        ],
    }


def possible(e: Evidence, advice: tuple[Advice, ...]) -> list[Advice]:
    """Without what this spec does not allow; of a spec that is itself refused by now, all."""
    if _refused(e, {}):
        return list(advice[:ADVICE])
    return [each for each in advice if not each.changes or not _refused(e, each.changes)][:ADVICE]


def _refused(e: Evidence, changes: Any) -> bool:
    try:
        e.spec.with_(**changes)
    except SpecError:
        return True
    return False


def _line(advice: dict[str, Any]) -> str:
    """`--batch 800: as many samples in 4 times fewer rounds (1.6x to 2.3x)`"""
    low, high = advice["gain"]["low"], advice["gain"]["high"]
    if low <= 1.0:
        return f"{advice['text']} (up to {high:.2g}x)"
    return f"{advice['text']} ({low:.2g}x to {high:.2g}x)"


def _late(straggler: Straggler) -> dict[str, Any]:
    return asdict(straggler) | {"alike": list(straggler.alike)}
