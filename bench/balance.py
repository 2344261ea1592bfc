"""One of two workers is slowed 1.78x: `--balance` beside even shares and the sum of both speeds.

    python -m bench.balance

LeNet. The slowed worker does real work for nothing: forward and back once more over 78 % of its
samples, gradients thrown away; it does not sleep. What each worker can do is measured right before
and after each contender, with `independent`, which exchanges nothing. All rates are over the whole
run, its first steps included. What an exchange costs two equal workers is told beside it: shares by
speed cannot bring that back.

In the swapped runs the other worker is the slow one from the middle on; told is after how many
rounds the next ten were again at 90 % of the sum. Runs take turns.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
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

EXCHANGES: dict[str, dict[str, Any]] = {
    "ps-sync shm": {"strategy": "ps-sync", "transport": "shm"},
    "ps-sync tcp": {"strategy": "ps-sync", "transport": "tcp"},
    "allreduce": {"strategy": "allreduce"},
}


@dataclass
class Told:
    """Of one exchange, a number a repeat; all but the last are shares of the sum of speeds."""

    balanced: list[float] = field(default_factory=list)
    even: list[float] = field(default_factory=list)
    equal: list[float] = field(default_factory=list)  # workers, of which none is slowed
    back: list[float] = field(default_factory=list)  # rounds after a swap


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
    parser.add_argument("--batch", type=int, default=64, help="of each worker")
    args = parser.parse_args(arguments)
    if args.repeats < 1 or args.steps < 4 * WINDOW:
        parser.error(f"--repeats must be at least 1 and --steps at least {4 * WINDOW}.")
    told: dict[str, Told] = {name: Told() for name in EXCHANGES}
    own: list[list[float]] = []  # by worker
    with tempfile.TemporaryDirectory() as scratch:

        def run(task: LeNet, **how: Any) -> list[Steps]:
            size = {"workers": WORKERS, "steps": args.steps, "batch": args.batch}
            run = paceline.fit(task, out=Path(scratch), evaluate="never", **size, **how)
            return records(run)

        def alone(task: LeNet) -> float:
            speeds = own_speeds(run(task, strategy="independent"))
            if isinstance(task, Slowed):
                own.append(speeds)
            return sum(speeds)

        for repeat in range(args.repeats):
            for name, how in EXCHANGES.items():
                measure(told[name], run, alone, how, args.steps // 2)
                last = f"{told[name].balanced[-1]:.3f} of the sum"
                last += f" (even shares {told[name].even[-1]:.3f}, equal workers "
                last += f"{told[name].equal[-1]:.3f}); back after {told[name].back[-1]:g} rounds"
                print(f"{repeat + 1}/{args.repeats} {name}: {last}", file=sys.stderr, flush=True)
    fast, slow = ([speeds[worker] for speeds in own] for worker in range(WORKERS))
    print(f"LeNet [{args.batch}], {args.steps} rounds; median (range) of {args.repeats}")
    print(f"own speeds, samples/s: {spread(fast, ',.0f')} and, slowed, {spread(slow, ',.0f')}")
    print(f"of their sum with --balance (wanted {LEAST}); even shares; two equal workers:")
    for name, of in told.items():
        met = "met" if statistics.median(of.balanced) >= LEAST else "not met"
        print(f"  {name:<12} {spread(of.balanced, '.3f')} {met}", end="; ")
        print(f"{spread(of.even, '.3f')}; {spread(of.equal, '.3f')}")
    print(f"rounds after a swap until the next {WINDOW} were at {AGAIN} of the sum:")
    for name, of in told.items():
        met = "met" if statistics.median(of.back) <= WITHIN else "not met"
        print(f"  {name:<12} {spread(of.back, 'g')}; wanted {WITHIN}: {met}")


def measure(
    told: Told,
    run: Callable[..., list[Steps]],
    alone: Callable[[LeNet], float],
    how: dict[str, Any],
    turn: int,
) -> None:
    """One exchange, once: what each worker does alone is measured on either side of it."""
    before = alone(Slowed())
    balanced = speed(run(Slowed(), balance=True, **how))
    even = speed(run(Slowed(), **how))
    swapped = run(Slowed(turn), balance=True, **how)
    both = (before + alone(Slowed())) / 2
    equal = speed(run(LeNet(), **how)) / alone(LeNet())
    told.balanced.append(balanced / both)
    told.even.append(even / both)
    told.equal.append(equal)
    told.back.append(recovered(swapped, turn, AGAIN * both))


if __name__ == "__main__":
    main()
