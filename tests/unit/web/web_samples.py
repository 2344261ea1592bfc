"""Runs and sweeps that never were, in folders that are as real ones."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from paceline.spec import RunSpec
from paceline.store.folder import RunFolder
from paceline.store.steps import StepWriter
from paceline.store.sweeps import SweepFolder, Trial
from paceline.types import Event, Resources, Score


def a_run(root: Path, label: str | None = None, state: str = "done", **spec: Any) -> RunFolder:
    """Two workers with two seconds of steps."""
    folder = RunFolder.create(root, RunSpec(strategy="ps-async", workers=2, **spec), label=label)
    roles = [{"role": f"worker-{n}", "host": "here", "device": "cpu"} for n in (0, 1)]
    folder.write_live(state, os.getpid(), roles)
    for n in (0, 1):
        take_steps(folder, f"worker-{n}", 0, 200)
        folder.append_resources([used(t, f"worker-{n}") for t in (2.0, 3.0, 4.0)])
    folder.append_score(
        Score(time=4.1, role="", step=200, epoch=1.0, final=True, values={"accuracy": 0.91})
    )
    folder.close()
    return folder


def take_steps(folder: RunFolder, role: str, first: int, count: int) -> None:
    """Steps of 10 ms, 64 samples each."""
    writer = StepWriter(folder.steps_path(role))
    for i in range(first, first + count):
        end = 2 + 0.01 * (i + 1)
        fine = (0.0005, 0, 0.003, 0.005, 0, 0.0006, 0.0004, 0.0005, 0)
        writer.append(end, i, 0, 64, 1 / (1 + i), *fine, end - 0.0015, i, i % 3)
    writer.close()


def used(time: float, role: str) -> Resources:
    return Resources(
        time=time, role=role, cpu_seconds=0.9 * time, memory_bytes=50_000_000, sent=9, received=9
    )


def happened(folder: RunFolder, detail: str) -> None:
    folder.append_event(Event(time=3.0, role="worker-1", kind="died", detail=detail))
    folder.close()


def a_sweep(root: Path) -> SweepFolder:
    """One worker and two, twice each, with the runs of the first repeat in its folder."""
    names = {1: "1 worker", 2: "2 workers"}
    cells = [
        {
            **{"name": name, "base": names[1], "fields": {"workers": n}},
            "spec": RunSpec(strategy="single" if n == 1 else "ps-sync", workers=n).model_dump(),
        }
        for n, name in names.items()
    ]
    study = {
        **{"name": "strong", "question": "Does a second worker pay?", "repeats": 2},
        **{"work": "fixed", "hold": None, "target": None},
    }
    folder = SweepFolder.create(root, "strong-softmax", study, cells, {})
    for repeat in (0, 1):
        for n, name in names.items():
            run = a_run(folder.runs, f"run-{n}-{repeat}")
            rate = 1000.0 * n + repeat
            figures = {
                "samples_per_second": rate,
                "low": rate - 9,
                "high": rate + 9,
                "accuracy": 0.9,
            }
            folder.append_trial(
                Trial(cell=name, repeat=repeat, run=run.name, seconds=4.0, figures=figures)
            )
    folder.write_state("done")
    folder.close()
    return folder
