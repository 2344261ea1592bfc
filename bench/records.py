"""What benches read from the step records of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paceline.measure.rates import durations
from paceline.store.steps import Steps, read_steps

if TYPE_CHECKING:
    import paceline


def records(run: paceline.Run) -> list[Steps]:
    """Of each worker, in all its lives."""
    workers = range(run.summary["spec"]["workers"])
    return [read_steps(run.folder.steps_path(f"worker-{w}")) for w in workers]


def begin(steps: Steps) -> float:
    return float(steps["time"][0] - durations(steps[:1])[0])


def speed(steps: list[Steps]) -> float:
    """Samples a second of all workers together, from the first step's begin to the last's end."""
    end = max(float(one["time"][-1]) for one in steps)
    samples = sum(float(one["samples"].sum()) for one in steps)
    return samples / (end - min(map(begin, steps)))
