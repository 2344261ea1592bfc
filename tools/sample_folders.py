"""A run's and a sweep's folder, made up in milliseconds: for tests of whatever reads them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from paceline.report.summary import summarise
from paceline.report.trials import curve, figures
from paceline.spec import RunSpec
from paceline.store.folder import RunFolder
from paceline.store.steps import StepWriter
from paceline.store.sweeps import SweepFolder, Trial
from paceline.study.cells import plan
from paceline.study.study import Study
from paceline.types import FINE, Event, Facts, Resources, Score, Traffic

BEGIN = 2.0  # seconds until the first step
EACH = 0.01  # seconds of a step


def sample_run(
    root: Path, strategy: str = "ps-async", workers: int = 2, steps: int = 300, **more: Any
) -> RunFolder:
    """Workers that compute most of the time; one of them dies and comes back."""
    spec = RunSpec(strategy=strategy, workers=workers, **more)
    folder = RunFolder.create(root, spec)
    facts = Facts(
        parameters=7850, samples=60000, batch=200, epochs=1, lr=0.5, optimizer="sgd", data="mnist"
    )
    resolved = spec.model_copy(update={"batch": 200, "epochs": 1, "lr": 0.5, "optimizer": "sgd"})
    folder.write_resolved(resolved, facts, t0=0.0)
    names = [f"worker-{n}" for n in range(workers)]
    for n, name in enumerate(names):
        _steps(folder, name, steps, seed=n)
    end = BEGIN + EACH * steps
    for n in range(20):
        time = BEGIN + (end - BEGIN) * n / 19
        folder.append_resources([_used(name, time, n) for name in names])
    for n in range(1, 4):
        folder.append_score(
            Score(
                time=BEGIN + (end - BEGIN) * n / 3,
                role="worker-0",
                step=steps * n // 3,
                epoch=n / 3,
                final=n == 3,
                values={"accuracy": 0.9 + 0.01 * n, "loss": 0.4 / n},
                count=10000,
            )
        )
    if workers > 1:
        folder.append_event(
            Event(
                time=3.0, role="worker-1", kind="died", detail="signal 9 <script>alert(1)</script>"
            )
        )
        folder.append_event(Event(time=3.4, role="worker-1", kind="restarted", detail="life 2"))
    roles = [{"role": name, "host": "sample", "device": "cpu", "pid": 1} for name in names]
    folder.write_live("done", os.getpid(), roles)
    folder.close()
    return folder


def sample_sweep(root: Path, question: str = "Do more workers pay?", **fields: Any) -> SweepFolder:
    """One, two and three workers, twice each."""
    study = Study(
        name="sample",
        question=question,
        run=fields,
        vary={"strategy": ("ps-sync",), "workers": (1, 2, 3)},
        baseline={"strategy": "single", "workers": 1},
        repeats=2,
    )
    cells = plan(study).cells
    kept = [
        {"name": c.name, "base": c.base, "fields": dict(c.fields), "spec": c.spec.model_dump()}
        for c in cells
    ]
    folder = SweepFolder.create(root, "sample", study.as_object(), kept, {})
    for repeat in range(study.repeats):
        for cell in cells:
            spec = cell.spec
            more = {k: v for k, v in fields.items() if k in ("task", "data")}
            run = sample_run(folder.runs, spec.strategy, spec.workers, 200 + 10 * repeat, **more)
            summary = summarise(run)
            folder.append_trial(
                Trial(
                    cell=cell.name,
                    repeat=repeat,
                    run=run.name,
                    seconds=5.0,
                    figures=figures(run, summary),
                    curve=curve(run, summary),
                )
            )
    folder.append_trial(
        Trial(cell=cells[-1].name, repeat=2, run=None, seconds=1.0, fault="It died.")
    )
    folder.write_state("done")
    folder.close()
    return folder


def _steps(folder: RunFolder, role: str, count: int, seed: int) -> None:
    phases = dict.fromkeys(FINE, 0.0) | {"forward": 0.004, "backward": 0.004, "wait": 0.002}
    writer = StepWriter(folder.steps_path(role))
    for n in range(count):
        end = BEGIN + EACH * (n + 1)
        writer.append(
            *(end, n, 0, 200, 2.0 / (1 + n / 20)),
            *(phases[name] for name in FINE),
            *(end - 0.002, n, (n + seed) % 3),
        )
    writer.close()


def _used(role: str, time: float, n: int) -> Resources:
    return Resources(
        time=time,
        role=role,
        cpu_seconds=0.1 * n,
        memory_bytes=300_000_000 + 1_000_000 * n,
        sent=100_000 * n,
        received=200_000 * n,
        traffic=(Traffic("server-0", 100_000 * n, 200_000 * n, n, n),),
    )
