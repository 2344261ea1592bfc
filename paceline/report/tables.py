"""A run's tables, from the summary that `paceline run --json` prints and nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from paceline.data.catalog import with_features
from paceline.diagnose.scaling import Ratio, efficiency, speedup
from paceline.report.faults import faults_table
from paceline.report.hosts import hosts_table, traffic_table
from paceline.report.layout import (
    Column,
    Fitting,
    inside_note,
    named,
    render,
    stacked,
    table,
)
from paceline.report.words import (
    NONE,
    Summary,
    between,
    duration,
    many,
    number,
    percent,
    rate,
    share,
    short,
    times,
)
from paceline.store.listing import RunEntry
from paceline.tasks.catalog import BUILT_IN, data_of
from paceline.types import PHASES

__all__ = [
    "comparison",
    "event_line",
    "events",
    "header",
    "headline",
    "render",
    "report",
    "role_columns",
    "run_table",
    "runs_table",
    "verdict",
]


def report(summary: Summary) -> RenderableType:
    """Everything the terminal tells of a run, except what it gained over another."""
    tables = (run_table(summary), traffic_table(summary), hosts_table(summary))
    told = (headline(summary), verdict(summary), events(summary), faults_table(summary))
    return stacked(header(summary), *tables, *told)


def header(summary: Summary) -> Text:
    """`softmax on mnist · ps-async · 3 workers, 1 server · shm · batch 200 · lr 0.5`

    After the rate stands its recipe, as far as it is more than that rate.
    """
    spec = summary["spec"]
    what = _task(spec["task"])
    data = spec.get("data")
    if spec["task"] in BUILT_IN:
        data = with_features(data or data_of(spec["task"]), spec.get("features"))
    if data:
        what += f" on {data}"
    facts = [spec["strategy"], many(spec["workers"], "worker")]
    if spec.get("servers"):
        facts[-1] += ", " + many(spec["servers"], "server")
        if spec.get("replicas"):
            facts[-1] += ", " + many(spec["servers"], "standby")
        facts.append(spec["transport"])
    if spec.get("batch") is not None:
        times = spec.get("accumulate") or 1
        facts.append(f"batch {spec['batch']}" + (f" x {times}" if times > 1 else ""))
    if spec.get("lr") is not None:
        facts.append(_rate(spec, summary.get("recipe") or {}))
    return Text.assemble((what, "bold"), *(f" · {fact}" for fact in facts))


def _rate(spec: Mapping[str, Any], recipe: Mapping[str, Any]) -> str:
    """`lr 0.001 scaled to 0.0049, warm-up 0.6 epochs, linear decay`"""
    told = f"lr {spec['lr']:g}"
    if recipe.get("peak") not in (None, spec["lr"]):
        told += f" scaled to {recipe['peak']:.3g}"
    if spec.get("warmup"):
        told += f", warm-up {spec['warmup']:.2g} epochs"
    if spec.get("decay") in ("linear", "cosine"):
        told += f", {spec['decay']} decay"
    return told


def _task(name: str | None) -> str:
    """A task of the user's own by its class alone, without the path to it."""
    return name.rpartition(":")[2] if name else NONE


def headline(summary: Summary) -> Text:
    """`41,230 samples/s (40,900 – 41,600), warm-up 120 steps dropped; accuracy 92.31 %; 7.4 s`"""
    throughput, seconds = summary["throughput"], summary["seconds"]
    quality = summary["quality"]
    accuracy = quality.get("accuracy")
    told = rate(throughput)
    if throughput.get("warmup_steps"):
        told += f", warm-up {many(throughput['warmup_steps'], 'step')} dropped"
    if accuracy is not None:
        told += f"; accuracy {percent(accuracy)} %"
    if quality.get("auc") is not None:  # of two classes, where one may be rare
        told += f", log loss {quality['loss']:.4f}, AUC {quality['auc']:.4f}"
        if quality.get("calibration") is not None:
            told += f", calibration {quality['calibration']:.3f}"
    if seconds.get("to_target") is not None:
        told += f"; target reached after {duration(seconds['to_target'])}"
    told += f"; {duration(seconds.get('total'))}"
    if summary["status"] != "done":
        told += f"; {summary['status']}"
    return Text(told, style="bold")


def verdict(summary: Summary) -> RenderableType | None:
    """What limits the run, in a sentence, and what to change."""
    found = summary.get("verdict") or {}
    if not found.get("sentence"):
        return None
    return Group(Text(found["sentence"]), *(Text(f"· {line}") for line in found["advice"]))


def events(summary: Summary) -> RenderableType | None:
    """What happened on the way, and how many seconds into the run."""
    lines = [Text(event_line(event), style="yellow") for event in summary.get("events", ())]
    return Group(*lines) if lines else None


def event_line(event: Mapping[str, Any]) -> str:
    """`12.3 s  worker-1  died: signal 9`"""
    detail = ": " + event["detail"].replace("\n", " ") if event.get("detail") else ""
    return f"{duration(event['time'])}  {event['role']}  {event['kind']}{detail}"


def run_table(summary: Summary) -> RenderableType:
    """One row a role: what it did, what it used, where its time went."""
    roles = list(summary["roles"])
    timed = [role for role in roles if sum((role.get("phases") or {}).values())]
    used, short_used = ([_names(roles), *_use(roles, told)] for told in (number, short))
    note = inside_note(roles)
    if not timed:
        return stacked(Fitting(table(used), table(short_used)), note)
    phases = table([_names(timed), *_phases(timed)])
    tables = Fitting(
        table([*used, *_phases(roles)]),
        stacked(table(used), phases),
        stacked(table(short_used), phases),
    )
    return stacked(tables, note)


def role_columns(summary: Summary) -> list[Column]:
    """Everything that is told of roles, however wide."""
    roles = list(summary["roles"])
    return [_names(roles), *_use(roles, number), *_phases(roles)]


def _names(roles: Sequence[Summary]) -> Column:
    return Column(title="role", cells=[named(role) for role in roles], words=True, style="cyan")


def _use(roles: Sequence[Summary], large: Callable[[float | None], str]) -> list[Column]:
    def cells(key: str, told: Callable[[float | None], str]) -> list[str]:
        return [told(role.get(key)) for role in roles]

    columns = [
        Column(title="samples", cells=cells("samples", large)),
        Column(title="steps", cells=cells("steps", large)),
        Column(title="accuracy", unit="%", cells=cells("accuracy", percent)),
        Column(title="time", unit="s", cells=cells("seconds", _tenths)),
        Column(title="CPU", unit="%", cells=cells("cpu_pct", number)),
        Column(title="memory", unit="MB", cells=cells("memory_mb", number)),
        Column(title="sent", unit="MB", cells=cells("sent_mb", _tenths)),
        Column(title="received", unit="MB", cells=cells("received_mb", _tenths)),
    ]
    if any(role.get("dropped") is not None for role in roles):
        columns.insert(2, Column(title="dropped", cells=cells("dropped", large)))
    if any(role.get("holds_mb") is not None for role in roles):
        columns.insert(-2, Column(title="holds", unit="MB", cells=cells("holds_mb", _held)))
    coded = [role.get("coding") or {} for role in roles]
    if any(coded):
        ratio = [number(told.get("ratio"), 1) for told in coded]
        lost = [percent(told.get("error")) for told in coded]
        columns += [
            Column(title="ratio", unit="x", cells=ratio),
            Column(title="error", unit="%", cells=lost),
        ]
    return columns


def _tenths(value: float | None) -> str:
    return number(value, 1)


def _held(value: float | None) -> str:
    """Of a small model in hundredths of a megabyte."""
    return number(value, 2 if value is not None and value < 10 else 0)


def _phases(roles: Sequence[Summary]) -> list[Column]:
    """What part of a role's time each phase took, how stale its gradients were, its share."""
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
    for title, key in (("share", "mean"), ("at end", "last")):
        parts = [(role.get("share") or {}).get(key) for role in roles]
        columns.append(Column(title=title, unit="%", cells=[percent(part, 1) for part in parts]))
    return columns


ITSELF = Ratio(1.0, 0.0, math.inf)  # not measured, so without bounds


def comparison(summaries: Iterable[Summary], base: Summary) -> RenderableType:
    """One row a run: how fast and how right it was, and what that is against `base`.

    Efficiency is the speedup a worker: 100 % would mean that none of them is ever held up.
    """
    runs = list(summaries)
    specs = [run["spec"] for run in runs]
    rates = [run["throughput"] for run in runs]
    gains = [
        ITSELF if run is base else speedup(run["throughput"], base["throughput"]) for run in runs
    ]
    parts = [efficiency(gain, spec["workers"]) for gain, spec in zip(gains, specs, strict=True)]
    right = [percent(run["quality"].get("accuracy")) for run in runs]
    train = [_tenths(run["seconds"].get("train")) for run in runs]
    name = Column(title="strategy", cells=[s["strategy"] for s in specs], words=True, style="cyan")
    crew = Column(title="workers", cells=[number(s["workers"]) for s in specs])
    speed = Column(title="samples/s", cells=[number(r["samples_per_second"]) for r in rates])
    spread = Column(title="between", cells=[between(r["low"], r["high"]) for r in rates])
    gain = Column(title="speedup", cells=[times(gain) for gain in gains])
    part = Column(title="efficiency", unit="%", cells=[share(part) for part in parts])
    accuracy = Column(title="accuracy", unit="%", cells=right)
    time = Column(title="training", unit="s", cells=train)
    return Fitting(
        table([name, crew, speed, spread, gain, part, accuracy, time]),
        table([name, crew, speed, gain, part, accuracy, time]),
        table([name, speed, gain, part, accuracy]),
        table([name, speed, gain]),
    )


def runs_table(entries: Sequence[RunEntry]) -> RenderableType:
    """One row a run; what is wrong with a damaged one stands below."""
    run = Column(title="run", cells=[e.name for e in entries], words=True, style="cyan")
    state = Column(title="state", cells=[e.state for e in entries], words=True)
    what = [
        Column(title="task", cells=[_task(e.task) for e in entries], words=True),
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
