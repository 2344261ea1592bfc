"""One of two workers is slowed 1.78x: `--balance` beside even shares and the sum of both speeds.

    python -m bench.balance

LeNet. The slowed worker does real work for nothing: forward and back once more over 78 % of its
samples, gradients thrown away; it does not sleep. What each worker can do is measured in the same
repeat, with `independent`. All rates are over the whole run, its first steps included.

In the swapped runs the other worker is the slow one from the middle on; told is after how many
rounds the next ten were again at 90 % of the sum. Runs take turns.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

import paceline
from bench.records import records, speed
from bench.tables import spread
from paceline.data.base import Batch
from paceline.store.steps import Steps
from paceline.tasks.lenet import LeNet

MORE = 0.78  # of its samples that the slowed worker takes twice
LEAST = 0.95  # of the sum of speeds
AGAIN = 0.90  # of it, after a swap
WITHIN = 20  # rounds
WINDOW = 10  # rounds
WORKERS = 2

EVEN = {"strategy": "ps-sync"}
BALANCED: dict[str, dict[str, Any]] = {
    "ps-sync shm": {"strategy": "ps-sync", "transport": "shm", "balance": True},
    "ps-sync tcp": {"strategy": "ps-sync", "transport": "tcp", "balance": True},
    "allreduce": {"strategy": "allreduce", "balance": True},
}


class Slowed(LeNet):
    """LeNet with worker-1 slowed, or from step `turn` on worker-0."""

    def __init__(self, turn: int | None = None) -> None:
        self.turn = turn
        self.taken = 0

    def gradients(self, model: nn.Module, batch: Batch, weight: float) -> float:
        turned = self.turn is not None and self.taken >= self.turn
        self.taken += 1
        if _role() == ("worker-0" if turned else "worker-1"):
            few = tuple(column[: round(MORE * len(column))] for column in batch)
            if len(few[0]):
                torch.autograd.grad(self.loss(model, few), list(model.parameters()))
        return super().gradients(model, batch, weight)


def _role() -> str:
    """Which role this process is: its standard error goes to that role's log."""
    return Path("/proc/self/fd/2").readlink().stem


def own_speeds(steps: list[Steps]) -> list[float]:
    """Samples a second of each worker, while all were at it."""
    end = min(float(one["time"][-1]) for one in steps)
    return [speed([one[one["time"] <= end]]) for one in steps]


def recovered(steps: list[Steps], turn: int, least: float) -> float:
    """Rounds after `turn` until the next ten had at least so many samples a second."""
    ends = np.max([one["time"] for one in steps], axis=0)
    samples = np.sum([one["samples"] for one in steps], axis=0, dtype=np.float64)
    for first in range(turn, len(ends) - WINDOW + 1):
        span = slice(first, first + WINDOW)
        if samples[span].sum() / (ends[first + WINDOW - 1] - ends[first - 1]) >= least:
            return first - turn
    return float("inf")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--steps", type=int, default=400)
    args = parser.parse_args(arguments)
    if args.repeats < 1 or args.steps < 4 * WINDOW:
        parser.error(f"--repeats must be at least 1 and --steps at least {4 * WINDOW}.")
    fast, slow, even = [], [], []
    parts: dict[str, list[float]] = {name: [] for name in BALANCED}
    back: dict[str, list[float]] = {name: [] for name in BALANCED}
    with tempfile.TemporaryDirectory() as scratch:

        def run(turn: int | None = None, **how: Any) -> list[Steps]:
            size = {"workers": WORKERS, "steps": args.steps, "evaluate": "never"}
            return records(paceline.fit(Slowed(turn), out=Path(scratch), **size, **how))

        for repeat in range(args.repeats):
            own = own_speeds(run(strategy="independent"))
            fast.append(own[0])
            slow.append(own[1])
            even.append(speed(run(**EVEN)) / sum(own))
            for name, how in BALANCED.items():
                parts[name].append(speed(run(**how)) / sum(own))
                turn = args.steps // 2
                back[name].append(recovered(run(turn, **how), turn, AGAIN * sum(own)))
                told = f"{repeat + 1}/{args.repeats} {name}: {parts[name][-1]:.3f} of the sum"
                told += f" (even shares {even[-1]:.3f}); back after {back[name][-1]:g} rounds"
                print(told, file=sys.stderr, flush=True)
    print(f"own speeds, samples/s: {spread(fast, ',.0f')} and, slowed, {spread(slow, ',.0f')}")
    print(f"of their sum: ps-sync with even shares {spread(even, '.3f')}")
    for name in BALANCED:
        met = "met" if statistics.median(parts[name]) >= LEAST else "not met"
        print(f"  {name} --balance {spread(parts[name], '.3f')}; wanted {LEAST}: {met}")
    print(f"rounds after a swap until the next {WINDOW} were at {AGAIN} of the sum:")
    for name in BALANCED:
        met = "met" if statistics.median(back[name]) <= WITHIN else "not met"
        print(f"  {name} --balance {spread(back[name], 'g')}; wanted {WITHIN}: {met}")


if __name__ == "__main__":
    main()
