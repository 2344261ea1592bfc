"""What paid: one plain sentence on runs of the same work, with no claim beyond its interval."""

from __future__ import annotations

import math
from collections.abc import Sequence

from paceline.diagnose.scaling import Ratio, speedup
from paceline.report.words import Summary, many, percent, times

SPOKEN = {
    "independent": "training without exchange",
    "allreduce": "all-reduce training",
    "ps-sync": "synchronous training",
    "ps-async": "asynchronous training",
}


def what_paid(summaries: Sequence[Summary], base: Summary) -> str:
    """How each run's samples/s and accuracy stand against those of `base`, which has one worker."""
    gains = [
        (run, speedup(run["throughput"], base["throughput"]))
        for run in summaries
        if run is not base
    ]
    gains.sort(key=lambda pair: -1.0 if math.isnan(pair[1].value) else pair[1].value, reverse=True)
    clauses = [_clause(run, base, gain) for run, gain in gains]
    if all(gain.high < 1 for _, gain in gains):
        clauses.insert(0, "one worker is the fastest for this model here")
    told = "; ".join(clauses)
    return f"{told[0].upper()}{told[1:]}."


def _clause(run: Summary, base: Summary, gain: Ratio) -> str:
    spec = run["spec"]
    who = f"{SPOKEN.get(spec['strategy'], spec['strategy'])} with {many(spec['workers'], 'worker')}"
    told = f"{who} {_speed(gain)}{_accuracy(run, base)}"
    return told + _lost(run) if gain.high < 1 else told


def _speed(gain: Ratio) -> str:
    if math.isnan(gain.value):
        return "was too short to measure"
    if gain.low <= 1 <= gain.high:
        return f"shows no difference in speed from one worker, {times(gain)}"
    return f"was {times(gain)} as fast as one worker"


def _accuracy(run: Summary, base: Summary) -> str:
    ours, theirs = run["quality"].get("accuracy"), base["quality"].get("accuracy")
    if ours is None or theirs is None:
        return ""
    return f", with accuracy {percent(ours)} % against {percent(theirs)} %"


def _lost(run: Summary) -> str:
    """What the workers did instead of computing, where they say."""
    workers = [role for role in run["roles"] if role["role"].startswith("worker-")]
    phases = [worker.get("phases") or {} for worker in workers]
    spent = sum(sum(own.values()) for own in phases)
    if not spent:
        return ""
    held = sum(own.get("exchange", 0.0) + own.get("wait", 0.0) for own in phases)
    return f" (exchange and waiting took {held / spent:.0%} of its workers' time)".replace(
        "%", " %"
    )
