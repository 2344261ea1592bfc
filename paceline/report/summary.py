"""A run in one object: what `--json` prints, from the run's folder alone.

Megabytes are 10^6 bytes, CPU is in percent of one core, and what is not known is None.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from paceline.diagnose.faults import faults
from paceline.diagnose.gather import gather
from paceline.diagnose.records import Records, begin_of, read
from paceline.diagnose.usage import hosts_used, roles_used
from paceline.diagnose.verdict import verdict
from paceline.measure.rates import throughput
from paceline.report.shares import shares
from paceline.report.used import host_used, matrix, megabytes, role_used
from paceline.store.folder import RunFolder
from paceline.store.spans import Spans
from paceline.store.steps import Steps
from paceline.store.text import finite
from paceline.types import FINE, PHASES, Resources, Score, record


def summarise(folder: RunFolder, records: Records | None = None) -> dict[str, Any]:
    """The run as it stands: ended, under way, or broken off. `records`, if they were read."""
    records = records or read(folder)
    quality = _quality(records)
    roles = _roles(records, quality)
    summary: dict[str, Any] = {
        "run": folder.name,
        "dir": str(folder.path.resolve()),
        "status": folder.state,
        "spec": records.spec.model_dump(),
        "recipe": records.recipe,
        "throughput": asdict(throughput(list(records.steps.values()))),
        "seconds": _seconds(records),
        "quality": quality,
        "roles": roles,
        "hosts": _hosts(records),
        "verdict": verdict(gather(records)),
        "events": [record(event) for event in records.events],
        "faults": _faults(records),
    }
    strict: dict[str, Any] = finite(summary)
    return strict


def _faults(records: Records) -> list[dict[str, Any]]:
    kind = records.spec.kind
    ends = {role: steps["time"] for role, steps in records.steps.items()}
    in_rounds = kind.samples == "slices" and kind.shared
    return [asdict(fault) for fault in faults(records.events, ends, in_rounds=in_rounds)]


def _seconds(records: Records) -> dict[str, float | None]:
    stamps = [event.time for event in records.events]
    stamps += [score.time for score in records.scores]
    stamps += [sample.time for sample in records.resources]
    stamps += [float(steps["time"][-1]) for steps in records.steps.values()]
    begin, end = records.training or (None, None)
    return {
        "total": max(stamps, default=None),
        "train": None if begin is None or end is None else end - begin,
        "startup": begin,
        "to_target": _to_target(records.scores, records.spec.target_accuracy),
    }


def _to_target(scores: list[Score], target: float | None) -> float | None:
    if target is None:
        return None
    reached = [score.time for score in scores if score.values.get("accuracy", -1.0) >= target]
    return min(reached, default=None)


def _quality(records: Records) -> dict[str, float | None]:
    final = [score for score in records.scores if score.final]
    last = (final or records.scores)[-1:]
    values = last[0].values if last else {}
    return {"accuracy": None, "loss": None, **values}


def _roles(records: Records, quality: dict[str, float | None]) -> list[dict[str, Any]]:
    samples: dict[str, list[Resources]] = {}
    for sample in records.resources:
        samples.setdefault(sample.role, []).append(sample)
    use = roles_used(records.resources, records.training)
    traffic = matrix(records.roles, records.resources)
    dealt = shares(records.steps) if records.spec.balance else {}
    found = []
    for role in records.roles:
        name = role["role"]
        used = samples.get(name, [])
        told = role_used(use.get(name), used) | {"traffic": traffic[name]}
        share = dealt.get(name)
        found.append(_role(role, records, quality, used, told) | {"share": share})
    return found


def _hosts(records: Records) -> list[dict[str, Any]]:
    gpus: dict[str, list[str]] = {}
    for role in records.roles:
        if role.get("gpu") and not role.get("inside"):
            gpus.setdefault(role["gpu"], []).append(role["role"])
    found = hosts_used(records.hosts, records.training)
    return [host_used(use, records.usable, gpus) for use in found.values()]


def _role(
    role: dict[str, Any],
    records: Records,
    quality: dict[str, float | None],
    used: list[Resources],
    told: dict[str, Any],
) -> dict[str, Any]:
    name = role["role"]
    report = role.get("report") or {}
    steps = records.steps.get(name)
    work = _reported(report) if steps is None else _work(steps)
    host = records.steps.get(role.get("inside") or "")
    if host is not None:  # it served as long as its host trained
        work["seconds"] = _work(host)["seconds"]
    return {
        "role": name,
        "inside": role.get("inside"),
        "host": role.get("host"),
        "device": role.get("device"),
        "restarts": role.get("restarts"),
        "samples": work["samples"],
        "steps": work["steps"],
        "dropped": report.get("dropped") if records.spec.backup else None,
        "seconds": work["seconds"],
        "holds_mb": megabytes(report.get("holds")),
        "coding": report.get("coding"),
        "accuracy": _accuracy(name, records, quality),
        "gpu": role.get("gpu"),
        **told,
        "sent_mb": megabytes(report.get("sent", used[-1].sent if used else None)),
        "received_mb": megabytes(report.get("received", used[-1].received if used else None)),
        "phases": work["phases"],
        "spans": _spans(steps, records.spans.get(name)),
        "staleness": _staleness(steps) if records.spec.kind.samples == "leases" else None,
    }


def _work(steps: Steps) -> dict[str, Any]:
    return {
        "samples": int(steps["samples"].sum(dtype=np.int64)),
        "steps": len(steps),
        "seconds": float(steps["time"][-1]) - begin_of(steps),
        "phases": {phase: float(steps[phase].sum(dtype=np.float64)) for phase in PHASES},
    }


def _spans(steps: Steps | None, spans: Spans | None) -> dict[str, float | None] | None:
    """Seconds by the finest names there are: of steps, of pauses between them, of serving."""
    found: dict[str, float | None] = {}
    if steps is not None:
        found |= {name: float(steps[name].sum(dtype=np.float64)) for name in FINE}
    if spans is not None:
        names = (spans.dtype.names or ())[1:]
        found |= {name: float(spans[name].sum(dtype=np.float64)) for name in names}
    return found or None


def _reported(report: dict[str, Any]) -> dict[str, Any]:
    """What a role that records no steps said of itself; a server's steps are updates applied."""
    return {
        "samples": report.get("samples"),
        "steps": report.get("steps", report.get("applied")),
        "seconds": report.get("seconds"),
        "phases": report.get("phases"),
    }


def _accuracy(name: str, records: Records, quality: dict[str, float | None]) -> float | None:
    if not name.startswith("worker-"):
        return None
    own = [score for score in records.scores if score.role == name and score.final]
    if own:
        return own[-1].values.get("accuracy")
    return quality["accuracy"] if records.spec.kind.shared else None


def _staleness(steps: Steps | None) -> dict[str, Any] | None:
    if steps is None:
        return None
    values, counts = np.unique(steps["staleness"], return_counts=True)
    return {
        "mean": float(steps["staleness"].mean()),
        "max": int(values[-1]),
        "histogram": {str(v): int(c) for v, c in zip(values, counts, strict=True)},
    }
