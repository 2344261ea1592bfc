"""One of two workers is slowed 1.78x: `--balance` beside even shares and the sum of both speeds.

    python -m bench.balance                        about ten minutes

LeNet. The slowed worker does real work for nothing: forward and back once more over 78 % of its
samples, gradients thrown away; it does not sleep. What each worker can do is measured right before
and after each contender, with `independent`, which exchanges nothing. All rates are over the whole
run, its first steps included; told are shares of the sum of both workers' own speeds:

    balanced, even   with `--balance`, and without
    equal            what two workers reach of which none is slowed: what an exchange and being in
                     step cost, which no shares bring back
    inside           `balanced` again, by the speeds that both had in that very run
    hindsight        the most that shares could have reached there that stay the same for the whole
                     run, were the exchange for nothing: found afterwards from all its rounds

In the swapped runs the other worker is the slow one from the middle on; told is after how many
rounds the next ten were again at 90 % of the sum, and of what the run had right before. Runs take
turns.
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
from bench.catalog import BALANCE, ENOUGH
from bench.findings import Findings, tell
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


SHOWN = {  # of each exchange, and in which form
    **dict.fromkeys(("balanced", "even", "equal", "inside", "hindsight"), ".3f"),
    **dict.fromkeys(("back", "as_before"), "g"),
}


@dataclass
class Told:
    """Of one exchange, a number a repeat."""

    balanced: list[float] = field(default_factory=list)
    even: list[float] = field(default_factory=list)
    equal: list[float] = field(default_factory=list)
    inside: list[float] = field(default_factory=list)
    hindsight: list[float] = field(default_factory=list)
    back: list[float] = field(default_factory=list)  # rounds after a swap, to so much of the sum
    as_before: list[float] = field(default_factory=list)  # and of what the run itself had


class Slowed(LeNet):
    """LeNet with worker-1 slowed, or from step `turn` on worker-0."""

    def __init__(self, turn: int | None = None) -> None:
        self.turn = turn
        self.taken = 0

    def gradients(self, model: nn.Module, batch: Batch, weight: float) -> float:
        turned = self.turn is not None and self.taken >= self.turn
        self.taken += 1
        if role() == ("worker-0" if turned else "worker-1"):
            few = tuple(column[: round(MORE * len(column))] for column in batch)
            if len(few[0]):
                torch.autograd.grad(self.loss(model, few), list(model.parameters()))
        return super().gradients(model, batch, weight)


def role() -> str:
    """Which role this process is: its standard error goes to that role's log."""
    return Path("/proc/self/fd/2").readlink().stem


def own_speeds(steps: list[Steps]) -> list[float]:
    """Samples a second of each worker, while all were at it."""
    end = min(float(one["time"][-1]) for one in steps)
    return [speed([one[one["time"] <= end]]) for one in steps]


def inside(steps: list[Steps]) -> tuple[float, float]:
    """What a run of two reached of the sum of the speeds both had in it, and could have at most.

    Worker i took cᵢ(t) seconds for a sample in round t. With n of N samples always given to the
    first, rounds would have taken Σ max(n·c₀(t), (N − n)·c₁(t)): that of the best n is the least.
    """
    samples = np.array([one["samples"] for one in steps], dtype=np.float64)
    seconds = np.array([one["data"] + one["compute"] for one in steps], dtype=np.float64)
    own = float((samples.sum(axis=1) / seconds.sum(axis=1)).sum())
    costs, whole = seconds / samples, float(samples[:, 0].sum())
    first = np.arange(1.0, whole)[:, None]
    least = np.maximum(first * costs[0], (whole - first) * costs[1]).sum(axis=1).min()
    return speed(steps) / own, float(samples.sum() / least / own)


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
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch", type=int, default=256, help="of each worker")
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
    speeds = f"{spread(fast, ',.0f')} and, slowed, {spread(slow, ',.0f')}"
    print(f"LeNet [{args.batch}], {args.steps} rounds; own samples/s {speeds}", file=sys.stderr)
    usual = all(getattr(args, name) == parser.get_default(name) for name in ("batch", "steps"))
    tell(BALANCE, findings(told), args.repeats, whole=usual and args.repeats >= ENOUGH)


def findings(told: dict[str, Told]) -> Findings:
    """What is shown, and what was wanted of it."""
    found = Findings(("", *(name.replace("_", " ") for name in SHOWN)))
    for name, of in told.items():
        shown = (spread(getattr(of, what), form) for what, form in SHOWN.items())
        found.rows.append((name, *shown))
    for name, of in told.items():
        met = statistics.median(of.balanced) >= LEAST
        found.want(f"{name}: {LEAST} of the sum", spread(of.balanced, ".3f"), met)
        met = statistics.median(of.back) <= WITHIN
        found.want(f"{name}: back within {WITHIN} rounds", spread(of.back, "g"), met)
    return found


def measure(
    told: Told,
    run: Callable[..., list[Steps]],
    alone: Callable[[LeNet], float],
    how: dict[str, Any],
    turn: int,
) -> None:
    """One exchange, once: what each worker does alone is measured on either side of it."""
    before = alone(Slowed())
    balanced = run(Slowed(), balance=True, **how)
    even = speed(run(Slowed(), **how))
    swapped = run(Slowed(turn), balance=True, **how)
    both = (before + alone(Slowed())) / 2
    equal = speed(run(LeNet(), **how)) / alone(LeNet())
    reached, at_most = inside(balanced)
    told.balanced.append(speed(balanced) / both)
    told.even.append(even / both)
    told.equal.append(equal)
    told.inside.append(reached)
    told.hindsight.append(at_most)
    told.back.append(recovered(swapped, turn, AGAIN * both))
    calm = speed([one[turn // 2 : turn] for one in swapped])
    told.as_before.append(recovered(swapped, turn, AGAIN * calm))


if __name__ == "__main__":
    main()
