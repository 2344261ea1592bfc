"""The bottleneck of a run, named from where its workers' time went."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from paceline.diagnose.straggler import Straggler
from paceline.types import PHASES

BUSY = 0.85  # of the cores: beyond it, roles outnumbering cores take turns on them


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a verdict rests on."""

    phases: Mapping[str, Mapping[str, float]]  # seconds by worker and phase
    servers: int = 0  # that are processes of their own
    standbys: int = 0
    cores: int | None = None
    cores_used: float | None = None  # by all roles together, mean while training
    straggler: Straggler | None = None


# Phase: what workers do in it, what would change it, and the advice.
PHASE_WORDS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "data": (
        "waiting for samples",
        "faster reading would help, more workers on the same disk would not",
        ("put the data on a faster disk, or prepare it once instead of at every step",),
    ),
    "compute": (
        "in forward and backward",
        "more cores would help, another exchange would not",
        ("add workers on cores that are idle, or on another host", "try --threads 1 and 2"),
    ),
    "exchange": (
        "moving gradients and parameters",
        "fewer or cheaper rounds would help, more workers would not",
        ("raise --batch: the same samples in fewer rounds", "on one host use --transport shm"),
    ),
    "wait": (
        "waiting at the exchange",
        "evener or less strict rounds would help, more workers would not",
        ("--strategy ps-async makes nobody wait for anybody, at the price of staleness",),
    ),
    "update": (
        "applying updates to parameters",
        "fewer rounds or a simpler optimizer would help, more workers would not",
        ("raise --batch: the same samples in fewer updates", "try --optimizer sgd"),
    ),
}


def verdict(parts: Parts) -> dict[str, Any]:
    """`bottleneck`, a `sentence` that names it, the `evidence` in numbers, and `advice`.

    The bottleneck is `cores` if roles take turns on them, else the phase with the largest share of
    the workers' time, or `unknown` if no time was recorded.
    """
    spent = {phase: sum(own[phase] for own in parts.phases.values()) for phase in PHASES}
    total = sum(spent.values())
    if not total:
        return _say("unknown", "no worker recorded a step, so nothing can be told", {}, ())
    shares = {phase: seconds / total for phase, seconds in spent.items()}
    evidence = {
        "shares": shares,
        "workers": len(parts.phases),
        "servers": parts.servers,
        "cores": parts.cores,
        "cores_used": parts.cores_used,
        "straggler": asdict(parts.straggler) if parts.straggler else None,
    }
    if parts.cores and _take_turns(parts, parts.cores):
        return _cores(parts, parts.cores, evidence)
    return _phase(parts, shares, evidence)


def _take_turns(parts: Parts, cores: int) -> bool:
    crowded = len(parts.phases) + parts.servers + parts.standbys > cores
    return crowded and (parts.cores_used is None or parts.cores_used >= BUSY * cores)


def _cores(parts: Parts, cores: int, evidence: dict[str, Any]) -> dict[str, Any]:
    crew = _many(len(parts.phases), "worker")
    if parts.standbys:
        crew += f", {_many(parts.servers, 'server')} and {_many(parts.standbys, 'standby')}"
    elif parts.servers:
        crew += f" and {_many(parts.servers, 'server')}"
    busy = "" if parts.cores_used is None else f", of which {parts.cores_used:.1f} are busy"
    sentence = (
        f"{crew} take turns on {_many(cores, 'core')}{busy}; "
        "more cores or fewer workers would help, another exchange would not"
    )
    fewer = max(1, cores - parts.servers - parts.standbys)
    return _say("cores", sentence, evidence, (f"try --workers {fewer}", "or add a host"))


def _phase(parts: Parts, shares: dict[str, float], evidence: dict[str, Any]) -> dict[str, Any]:
    phase = max(shares, key=shares.__getitem__)
    doing, change, advice = PHASE_WORDS[phase]
    who = "workers spend" if len(parts.phases) > 1 else "the worker spends"
    time = "their time" if len(parts.phases) > 1 else "its time"
    sentence = f"{who} {100 * shares[phase]:.0f} % of {time} {doing}"
    late = parts.straggler
    if phase == "wait" and late:
        sentence += f", behind {late.role} which arrives last in {100 * late.share:.0f} % of rounds"
        advice = (f"see what else runs beside {late.role}, or move it to another core", *advice)
    return _say(phase, f"{sentence}; {change}", evidence, advice)


def _say(
    bottleneck: str, sentence: str, evidence: dict[str, Any], advice: tuple[str, ...]
) -> dict[str, Any]:
    return {
        "bottleneck": bottleneck,
        "sentence": f"{bottleneck}: {sentence}.",
        "evidence": evidence,
        "advice": list(advice),
    }


def _many(count: int, thing: str) -> str:
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"
