"""What paid: one plain sentence on several runs of the same work, and no claim beyond its interval."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from paceline.diagnose.scaling import Ratio, speedup
from paceline.report.words import Summary, many, number, percent

SPOKEN = {
    "independent": "training without exchange",
    "allreduce": "all-reduce training",
    "ps-sync": "synchronous training",
    "ps-async": "asynchronous training",
}


def what_paid(summaries: Sequence[Summary]) -> str:
    """How each run's samples/s and accuracy stand against the `single` run among them."""
    base = next(run for run in summaries if run["spec"]["strategy"] == "single")
    others = [run for run in summaries if run is not base]
    against = {id(run): speedup(run["throughput"], base["throughput"]) for run in others}
    others.sort(key=lambda run: against[id(run)].value, reverse=True)
    clauses = [_clause(run, base, against[id(run)]) for run in others]
    if all(ratio.high < 1 for ratio in against.values()):
        clauses.insert(0, "one worker is the fastest for this model here")
    told = "; ".join(clauses)
    return f"{told[0].upper()}{told[1:]}."


def _clause(run: Summary, base: Summary, ratio: Ratio) -> str:
    spec = run["spec"]
    who = f"{SPOKEN.get(spec['strategy'], spec['strategy'])} with {many(spec['workers'], 'worker')}"
    span = f"({ratio.low:.2f} – {ratio.high:.2f})"
    if ratio.low > 1 or ratio.high < 1:
        speed = f"was {ratio.value:.2f}x {span} as fast as one worker"
    else:
        speed = f"was as fast as one worker within the measurement, {ratio.value:.2f}x {span}"
    told = f"{who} {speed}, {_accuracy(run, base)}"
    lost = _lost(run)
    return f"{told}, {lost}" if ratio.value < spec["workers"] and lost else told


def _accuracy(run: Summary, base: Summary) -> str:
    ours, theirs = run["quality"].get("accuracy"), base["quality"].get("accuracy")
    if ours is None or theirs is None:
        return "accuracy not measured"
    return f"accuracy {percent(ours)} % against {percent(theirs)} %"


def _lost(run: Summary) -> str:
    return ""
