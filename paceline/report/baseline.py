"""The run with one worker that another run is held against."""

from __future__ import annotations

from pathlib import Path

from paceline.report.words import Summary
from paceline.store.folder import RunFolder
from paceline.store.listing import list_runs

# Runs that agree in these do the same work a step, so their samples/s can be compared.
WORK = (
    *("task", "data", "data_dir", "batch", "accumulate", "device", "threads"),
    *("optimizer", "lr", "momentum", "weight_decay"),
)


def comparable_single(run: RunFolder, root: Path) -> Summary | None:
    """The newest finished `single` run in `root`, on the same host, that agrees in WORK.

    One that was harmed on purpose is no measure.
    """
    if run.spec.strategy == "single":
        return None
    for entry in list_runs(root):
        if entry.strategy == "single" and entry.state == "done" and entry.samples_per_second:
            base = RunFolder(entry.path)
            if _work(base) == _work(run) and not base.spec.inject:
                return base.read_result()
    return None


def _work(run: RunFolder) -> tuple[object, ...]:
    host, spec = run.read_spec().get("host") or {}, run.spec
    return (host.get("name"), *(getattr(spec, name) for name in WORK))
