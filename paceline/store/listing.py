"""The runs in a folder of runs, from their small files alone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paceline.errors import StoreError
from paceline.store.folder import RESULT, RunFolder
from paceline.store.lookup import kind_of, run_paths


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEntry:
    """One run in a listing. What is not known, or not known yet, is None."""

    name: str
    path: Path
    state: str  # as in roles.json, or `lost`, or `damaged`
    why: str = ""  # what is damaged
    task: str | None = None
    strategy: str | None = None
    workers: int | None = None
    started: str | None = None
    samples_per_second: float | None = None
    accuracy: float | None = None
    seconds: float | None = None


def list_runs(root: Path) -> list[RunEntry]:
    """All runs in `root`, newest first. A damaged one is listed as such; it hides no other."""
    entries = [run_entry(path) for path in run_paths(root) if kind_of(path) != "sweep"]
    # Times are UTC in one format, so they sort as text; a run with none sorts by its name, last.
    return sorted(entries, key=lambda entry: (entry.started or "", entry.name), reverse=True)


def run_entry(path: Path) -> RunEntry:
    """Of the run in this folder, whatever state it is in."""
    folder = RunFolder(path)
    known: dict[str, Any] = {}
    try:
        about = folder.read_spec()
        spec = about["spec"]
        known["started"] = _text(about.get("started"))
        known["task"] = _text(spec.get("task"))
        known["strategy"] = _text(spec.get("strategy"))
        known["workers"] = _whole(spec.get("workers"))
        state = folder.state
        if (path / RESULT).is_file():
            result = folder.read_result()
            known["samples_per_second"] = _number(result, "throughput", "samples_per_second")
            known["accuracy"] = _number(result, "quality", "accuracy")
            known["seconds"] = _number(result, "seconds", "total")
    except StoreError as wrong:
        return RunEntry(name=path.name, path=path, state="damaged", why=str(wrong), **known)
    return RunEntry(name=path.name, path=path, state=state, **known)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) else None


def _number(result: dict[str, Any], part: str, field: str) -> float | None:
    inside = result.get(part)
    value = inside.get(field) if isinstance(inside, dict) else None
    return float(value) if isinstance(value, int | float) else None
