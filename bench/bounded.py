"""One of two workers is slowed 3x: `ssp --bound 3` beside `ps-sync`.

    python -m bench.bounded

From the records of each run: how far one worker ever was ahead of the other, and how long it took
to the same loss (the mean over the last hundred steps of all workers, by time). Runs take turns.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor, nn

import paceline
from bench.catalog import BOUNDED, ENOUGH
from bench.findings import Findings, tell
from bench.records import records
from bench.tables import spread
from paceline.tasks.lenet import LeNet

BOUND = 3
SLOWER = 3.0
CLAIM = Path("slow")  # in the working folder; the worker that creates it is the slow one
LOSS = 0.15
WINDOW = 100


class Slowed(LeNet):
    """LeNet; one worker takes three times as long for a step as it would."""

    slow: bool | None = None
    last = 0.0

    def loss(self, model: nn.Module, batch: Any) -> Tensor:
        if self.slow is None:
            self.slow = _claimed()
        elif self.slow:
            time.sleep((SLOWER - 1) * self.last)
        began = time.perf_counter()
        loss = super().loss(model, batch)
        self.last = 2.5 * (time.perf_counter() - began)  # forward, and backward after it
        return loss


def _claimed() -> bool:
    try:
        CLAIM.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def ahead(steps: list[np.ndarray]) -> int:
    """The most rounds that one worker was ahead of the other, at any arrival at the exchange."""
    most = 0
    for mine, others in (steps, steps[::-1]):
        taken = np.searchsorted(others["arrival"], mine["arrival"], side="right")
        # After the other's last step nobody waits for it any more.
        running = mine["arrival"] <= others["arrival"][-1]
        rounds = np.arange(1, len(mine) + 1)
        most = max(most, int((rounds - taken)[running].max(initial=0)))
    return most


def to_loss(steps: list[np.ndarray]) -> float:
    """Seconds from the first step's begin until the mean loss is low enough."""
    rows = np.concatenate(steps)
    rows = rows[np.argsort(rows["time"])]
    means = np.convolve(rows["loss"], np.ones(WINDOW) / WINDOW, mode="valid")
    low = np.flatnonzero(means <= LOSS)
    if not len(low):
        return float("nan")
    return float(rows["time"][low[0] + WINDOW - 1] - rows["arrival"].min())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--transport", default="auto")
    args = parser.parse_args()
    seconds: dict[str, list[float]] = {"ssp": [], "ps-sync": []}
    most = 0
    task = f"{Path(__file__).resolve()}:Slowed"
    with tempfile.TemporaryDirectory() as scratch:
        for repeat in range(args.repeats):
            for strategy, found in seconds.items():
                os.chdir(scratch)
                CLAIM.unlink(missing_ok=True)
                run = paceline.fit(
                    task,
                    strategy=strategy,
                    workers=2,
                    epochs=1,
                    transport=args.transport,
                    evaluate="end",
                    out=Path(scratch),
                    **({"bound": BOUND} if strategy == "ssp" else {}),
                )
                steps = records(run)
                found.append(to_loss(steps))
                if strategy == "ssp":
                    most = max(most, ahead(steps))
                told = f"{repeat + 1}/{args.repeats} {strategy:8} {found[-1]:6.1f} s to loss {LOSS}"
                print(
                    f"{told}, accuracy {run.quality['accuracy']:.4f}", file=sys.stderr, flush=True
                )
    ratios = [b / a for a, b in zip(seconds["ssp"], seconds["ps-sync"], strict=True)]
    result = Findings(("", f"seconds to loss {LOSS}"))
    result.rows = [(name, spread(values, ".1f")) for name, values in seconds.items()]
    result.want(f"nobody more than {BOUND} rounds ahead", str(most), most <= BOUND)
    faster = statistics.median(ratios) > 1
    result.want("`ssp` sooner at that loss than `ps-sync`", f"{spread(ratios, '.2f')}x", faster)
    whole = args.repeats >= ENOUGH and args.transport == "auto"
    tell(BOUNDED, result, args.repeats, whole=whole)


if __name__ == "__main__":
    main()
