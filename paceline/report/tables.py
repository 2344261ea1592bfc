"""A run's tables, from the summary that `paceline run --json` prints and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from paceline.diagnose.scaling import efficiency, speedup
from paceline.report.layout import Column, Fitting, render, table
from paceline.report.words import (
    NONE,
    Summary,
    between,
    duration,
    many,
    number,
    percent,
    rate,
    short,
    times,
)
from paceline.types import PHASES

__all__ = ["comparison", "events", "header", "headline", "render", "report", "run_table", "verdict"]


def report(summary: Summary) -> RenderableType:
    """Everything the terminal tells of a finished run."""
    parts = [header(summary), Text(), run_table(summary), Text(), headline(summary)]
    parts += [part for part in (verdict(summary), events(summary)) if part is not None]
    return Group(*parts)


def header(summary: Summary) -> Text:
    """`softmax on mnist · ps-async · 3 workers, 1 server · shm · batch 200 · lr 0.5`"""
    spec = summary["spec"]
    data = f" on {spec['data']}" if spec.get("data") else ""
    crew = many(spec["workers"], "worker")
    if spec.get("servers"):
        crew += ", " + many(spec["servers"], "server")
    facts = [spec["strategy"], crew]
    if spec.get("servers") and spec.get("transport"):
        facts.append(spec["transport"])
    facts += [f"{name} {spec[name]:g}" for name in ("batch", "lr") if spec.get(name) is not None]
    return Text.assemble((spec["task"] + data, "bold"), *(f" · {fact}" for fact in facts))


def headline(summary: Summary) -> Text:
    """`41,230 samples/s (40,900 – 41,600), warm-up 120 steps dropped; accuracy 92.31 %; 7.4 s`"""
    throughput, seconds = summary["throughput"], summary["seconds"]
    told = rate(throughput)
    if throughput.get("warmup_steps"):
        told += f", warm-up {many(throughput['warmup_steps'], 'step')} dropped"
    parts = [told]
    accuracy = summary["quality"].get("accuracy")
    if accuracy is not None:
        parts.append(f"accuracy {percent(accuracy)} %")
    if seconds.get("to_target") is not None:
        parts.append(f"target reached after {duration(seconds['to_target'])}")
    parts.append(duration(seconds.get("total")))
    if summary["status"] != "done":
        parts.append(f"the run {summary['status']} before its end")
    return Text("; ".join(parts), style="bold")


def verdict(summary: Summary) -> RenderableType | None:
    """What limits the run, in a sentence, and what to change."""
    found = summary.get("verdict") or {}
    if not found.get("sentence"):
        return None
    advice = [Padding(Text(f"· {line}"), (0, 0, 0, 2)) for line in found.get("advice", ())]
    return Group(Text(found["sentence"]), *advice)


# What every run does; telling it would hide what only this one did.
ROUTINE = frozenset({"start", "started", "ready", "end", "ended", "done", "stop"})


def events(summary: Summary) -> RenderableType | None:
    """The events worth telling, with the seconds into the run at which they happened."""
    told = [event for event in summary.get("events", ()) if event["kind"] not in ROUTINE]
    if not told:
        return None
    return Group(*(Text(event_line(event), style="yellow") for event in told))


def event_line(event: Mapping[str, Any]) -> str:
    """`12.3 s  worker-1  died: signal 9`"""
    detail = f": {event['detail']}" if event.get("detail") else ""
    return f"{duration(event['time'])}  {event['role']}  {event['kind']}{detail}"


def run_table(summary: Summary) -> RenderableType:
    """One row a role: what it did, what it used, where its time went."""
    roles = list(summary["roles"])
    names = Column(title="role", cells=[role["role"] for role in roles], words=True, style="cyan")
    use, phases = _use(roles, number), _phases(roles)
    narrow = _use(roles, short)
    if all(column.empty for column in phases):
        return Fitting(table([names, *use]), table([names, *narrow]))
    apart = table([names, *phases])
    return Fitting(
        table([names, *use, *phases]),
        Group(table([names, *use]), Text(), apart),
        Group(table([names, *narrow]), Text(), apart),
    )


def _use(roles: Sequence[Summary], large: Callable[[float | None], str]) -> list[Column]:
    def cells(key: str, told: Callable[[float | None], str]) -> list[str]:
        return [told(role.get(key)) for role in roles]

    return [
        Column(title="samples", cells=cells("samples", large)),
        Column(title="steps", cells=cells("steps", large)),
        Column(title="accuracy", unit="%", cells=cells("accuracy", percent)),
        Column(title="time", unit="s", cells=cells("seconds", _tenths)),
        Column(title="CPU", unit="%", cells=cells("cpu_pct", number)),
        Column(title="memory", unit="MB", cells=cells("memory_mb", number)),
        Column(title="sent", unit="MB", cells=cells("sent_mb", _tenths)),
        Column(title="received", unit="MB", cells=cells("received_mb", _tenths)),
    ]


def _tenths(value: float | None) -> str:
    return number(value, 1)


def _phases(roles: Sequence[Summary]) -> list[Column]:
    """Each phase's share of the time a role accounted for, and how stale its gradients were."""
    columns = []
    for phase in PHASES:
        cells = []
        for role in roles:
            spent = role.get("phases") or {}
            whole = sum(spent.values())
            cells.append(percent(spent.get(phase, 0) / whole, 1) if whole else NONE)
        columns.append(Column(title=phase, unit="%", cells=cells))
    stale = [(role.get("staleness") or {}).get("mean") for role in roles]
    columns.append(Column(title="staleness", unit="mean", cells=[number(s, 2) for s in stale]))
    return columns


def comparison(summaries: Iterable[Summary], base: Summary) -> RenderableType:
    """One row a run: how fast and how right it was, and what that is against `base`.

    Efficiency is the speedup a worker: 100 % would mean that none of them is ever held up.
    """
    runs = list(summaries)
    specs = [run["spec"] for run in runs]
    rates = [run["throughput"] for run in runs]
    gains = [speedup(rate, base["throughput"]) for rate in rates]
    shares = [efficiency(gain, spec["workers"]) for gain, spec in zip(gains, specs, strict=True)]
    columns = [
        Column(title="strategy", cells=[s["strategy"] for s in specs], words=True, style="cyan"),
        Column(title="workers", cells=[number(s["workers"]) for s in specs]),
        Column(title="samples/s", cells=[number(r["samples_per_second"]) for r in rates]),
        Column(title="speedup", cells=[times(gain) for gain in gains]),
        Column(title="efficiency", unit="%", cells=[_share(share) for share in shares]),
        Column(title="accuracy", unit="%", cells=[percent(_accuracy(run)) for run in runs]),
        Column(title="time", unit="s", cells=[_tenths(run["seconds"].get("total")) for run in runs]),
    ]
    spread = Column(title="between", cells=[between(r["low"], r["high"]) for r in rates])
    return Fitting(table([*columns[:3], spread, *columns[3:]]), table(columns))


def _share(share: Interval) -> str:
    return f"{100 * share.value:.0f} ({100 * share.low:.0f}–{100 * share.high:.0f})"


def runs_table(entries: Sequence[RunEntry]) -> RenderableType:
    """One row a run; what is wrong with a damaged one stands below."""
    run = Column(title="run", cells=[e.name for e in entries], words=True, style="cyan")
    state = Column(title="state", cells=[e.state for e in entries], words=True)
    what = [
        Column(title="task", cells=[e.task or NONE for e in entries], words=True),
        Column(title="strategy", cells=[e.strategy or NONE for e in entries], words=True),
        Column(title="workers", cells=[number(e.workers) for e in entries]),
    ]
    came = [
        Column(title="samples/s", cells=[number(e.samples_per_second) for e in entries]),
        Column(title="accuracy", unit="%", cells=[percent(e.accuracy) for e in entries]),
        Column(title="time", unit="s", cells=[_tenths(e.seconds) for e in entries]),
    ]
    damaged = [Text(e.why, style="yellow") for e in entries if e.why]
    return Group(Fitting(table([run, state, *what, *came]), table([run, state, *came])), *damaged)
