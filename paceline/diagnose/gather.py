"""From a run's records to the evidence that a verdict rests on. Arithmetic alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from paceline.diagnose.counters import Window
from paceline.diagnose.evidence import EVALUATION, OTHER, Evidence, Part, ServerPart, WorkerPart
from paceline.diagnose.records import Records
from paceline.diagnose.straggler import Straggler, find_straggler, in_common
from paceline.diagnose.usage import RoleUse, hosts_used, roles_used
from paceline.measure.rates import durations, throughput, warm_window
from paceline.store.spans import Spans
from paceline.store.steps import Steps
from paceline.types import FINE, PHASES

Seconds = dict[str, npt.NDArray[np.float64]]  # by span, one a step
MADE = ("data", "compute")  # what a worker does before it arrives at the exchange


def gather(records: Records) -> Evidence:
    """Over the window in which all workers were warm and none had finished."""
    spec, window = records.spec, warm_window(list(records.steps.values()))
    crew = [role for role in records.roles if not role.get("inside")]
    uses = roles_used(records.resources, window)
    served = [role for role in crew if role["role"].startswith("server-")]
    common = {
        "spec": spec,
        "parameters": records.facts.get("parameters"),
        "samples": records.facts.get("samples"),
        "servers": tuple(_server(role, records, uses, window) for role in served),
        "standbys": sum(role["role"].startswith("standby-") for role in crew),
        "beside": tuple(
            Part(role=role["role"], host=role.get("host"), use=uses.get(role["role"]))
            for role in crew
            if not role["role"].startswith(("worker-", "server-"))
        ),
        "hosts": hosts_used(records.hosts, window),
        "usable": frozenset(records.usable) if records.usable else None,
        "cores": min(filter(None, (records.cores, len(records.usable or ()))), default=None),
        "gpus": frozenset(role["gpu"] for role in crew if role.get("gpu")),
        "threads": _threads(crew),
        "ratio": _ratio(crew),
    }
    if window is None:
        return Evidence(**common)
    begin, end = window
    inside = {role: _within(steps, begin, end) for role, steps in records.steps.items()}
    inside = {role: steps for role, steps in inside.items() if len(steps)}
    spent = {role: _spent(inside[role], records, role) for role in inside}
    hosts = {role["role"]: role.get("host") for role in crew}
    workers = tuple(
        WorkerPart(
            role=role,
            host=hosts.get(role),
            steps=len(steps),
            shares=_shares(spent[role]),
            use=uses.get(role),
        )
        for role, steps in inside.items()
    )
    # A worker that a round went without has other rounds at the same number of steps.
    in_rounds = spec.kind.pooled and not spec.backup
    waits = in_rounds or spec.strategy in ("ssp", "local-sgd")
    late = find_straggler(inside) if waits else None
    path = _rounds_path(inside, spent) if in_rounds else _mean_path(workers)
    lateness, own = _lateness(late, inside, workers, in_rounds=in_rounds, seconds=end - begin)
    rate = throughput(list(records.steps.values()))
    return Evidence(
        **common,
        seconds=end - begin,
        steps=sum(len(steps) for steps in inside.values()) / max(1, len(inside)),
        path=path,
        workers=workers,
        straggler=late,
        late=lateness,
        own=own,
        error=(
            (rate.high - rate.low) / (2 * rate.samples_per_second)
            if rate.samples_per_second and rate.low is not None and rate.high is not None
            else None
        ),
    )


def _within(steps: Steps, begin: float, end: float) -> Steps:
    """In the order in which they ended, so that a part of them is one piece."""
    first, last = np.searchsorted(steps["time"], (begin, end), side="right")
    return steps[first:last]


def _spent(steps: Steps, records: Records, role: str) -> Seconds:
    """Where each step's time went, and that of the pause before it; of the first there is none."""
    fine = not np.isnan(steps["forward"]).any()
    names = FINE if fine else PHASES
    spent = {name: steps[name].astype(np.float64) for name in names}
    ends = steps["time"]
    begins = ends - durations(steps)
    pause = np.zeros(len(steps))
    pause[1:] = np.maximum(0.0, begins[1:] - ends[:-1])
    told = _pauses(records.spans.get(role), ends)
    left = pause.copy()
    for name, seconds in told.items():
        spent[name] = np.minimum(seconds, left)
        left -= spent[name]
    spent[OTHER] = left
    return spent


def _pauses(spans: Spans | None, ends: npt.NDArray[np.float64]) -> Seconds:
    """What a worker said of the pauses before its steps, by the step that came after each."""
    names = (spans.dtype.names or ())[1:] if spans is not None else ()
    found: Seconds = {}
    for name in names:
        assert spans is not None
        at = np.searchsorted(ends, spans["begin"], side="right")
        there = (at > 0) & (at < len(ends))
        seconds = np.zeros(len(ends))
        np.add.at(seconds, at[there], spans[name][there])
        found[EVALUATION if name == "evaluate" else name] = seconds
    return found


def _shares(spent: Seconds) -> dict[str, float]:
    return _parts({name: float(seconds.sum()) for name, seconds in spent.items()})


def _parts(sums: Mapping[str, float]) -> dict[str, float]:
    whole = sum(sums.values())
    return {name: value / whole for name, value in sums.items()} if whole > 0 else {}


def _mean_path(workers: Iterable[WorkerPart]) -> dict[str, float]:
    """Every worker's time alike."""
    shares = [worker.shares for worker in workers if worker.shares]
    names = {name: None for each in shares for name in each}
    return _parts({name: sum(each.get(name, 0.0) for each in shares) for name in names})


def _rounds_path(inside: Mapping[str, Steps], spent: Mapping[str, Seconds]) -> dict[str, float]:
    """Of each round that all took part in, what the worker did that arrived last."""
    rows = dict(zip(inside, in_common(list(inside.values())), strict=True))
    if not all(len(mine) for mine in rows.values()):
        return _mean_path(
            WorkerPart(role=role, shares=_shares(seconds)) for role, seconds in spent.items()
        )
    arrivals = np.stack([inside[role]["arrival"][rows[role]] for role in inside])
    last = np.argmax(arrivals, axis=0)
    sums: dict[str, float] = {}
    for place, role in enumerate(inside):
        mine = rows[role][last == place]
        for name, seconds in spent[role].items():
            sums[name] = sums.get(name, 0.0) + float(seconds[mine].sum())
    return _parts(sums)


def _lateness(
    late: Straggler | None,
    inside: Mapping[str, Steps],
    workers: Iterable[WorkerPart],
    *,
    in_rounds: bool,
    seconds: float,
) -> tuple[float, float]:
    """What part of the time others wait for the straggler, and what part of that its own work is.

    In rounds all wait as long as it is later than the worker before it; elsewhere others wait as
    much more than it does.
    """
    if late is None or seconds <= 0:
        return 0.0, 1.0
    others = [worker for worker in workers if worker.role not in late.roles]
    if not in_rounds:
        mine = next(worker for worker in workers if worker.role == late.role)
        waits = sum(worker.share("wait") for worker in others) / len(others)
        return max(0.0, waits - mine.share("wait")), 1.0
    share = min(1.0, late.late_seconds * late.share * late.rounds / seconds)

    def made(role: str) -> float:
        steps = inside[role]
        return float(np.mean(sum(steps[part].astype(np.float64) for part in MADE)))

    more = made(late.role) - max(made(worker.role) for worker in others)
    return share, min(1.0, max(0.0, more / late.late_seconds))


def _server(
    role: dict[str, Any], records: Records, uses: Mapping[str, RoleUse], window: Window | None
) -> ServerPart:
    name = role["role"]
    return ServerPart(
        role=name,
        host=role.get("host"),
        shares=_serving(records.spans.get(name), window),
        use=uses.get(name),
    )


def _serving(spans: Spans | None, window: Window | None) -> dict[str, float]:
    """Where a server's time went in the window; all of its time where it has no rows in it."""
    if spans is None or not len(spans):
        return {}
    some = spans
    if window is not None:
        inside = (spans["begin"] >= window[0]) & (spans["begin"] < window[1])
        some = spans[inside] if inside.any() else spans
    names = (spans.dtype.names or ())[1:]
    return _parts({name: float(some[name].sum(dtype=np.float64)) for name in names})


def _threads(crew: Iterable[Mapping[str, Any]]) -> int | None:
    told = [r["threads"] for r in crew if r["role"].startswith("worker-") and r.get("threads")]
    return max(told, default=None)


def _ratio(crew: Iterable[Mapping[str, Any]]) -> float | None:
    """How many times smaller gradients were made, on the mean of workers."""
    reports = [(role.get("report") or {}).get("coding") or {} for role in crew]
    told = [coding["ratio"] for coding in reports if coding.get("ratio")]
    return sum(told) / len(told) if told else None
