"""Are runs that do the same called the same, and runs that are 5 % slower called slower?

    python -m bench.sameness --keep same.jsonl --minutes 4       as often as it takes

A comparison is a small sweep of three cells: A, the same again (A'), and B, whose every step takes
1.05 times as long. Blocks have each once, in random order, and A'/A and B/A are judged as
`paceline sweep` judges them: different if the 95 % interval of the ratio leaves out 1.

Softmax regression with steps of five milliseconds: a worker computes, and spins until they are
over. (It does not sleep: whoever sleeps is slower than it says.) What is left as noise is what a
machine takes from a run by way of its cores. With `--computing` a step is LeNet's and takes as long
as it takes, on every core; that has the noise of caches and of sibling threads in it, too, and may
need `--most 200`. The file keeps what is measured, so that it can be done in parts.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

from torch import nn

from paceline import api
from paceline.data.base import Batch
from paceline.diagnose.repeats import differs, ratio, repeats_needed
from paceline.measure.cores import my_cores
from paceline.study.order import blocks
from paceline.tasks.lenet import LeNet
from paceline.tasks.softmax import Softmax

SLOWED = 1.05
STEP = 0.005  # seconds
SURELY = 0.04  # a little less than what is to be found, so that it nearly always is
MOST_FALSE, LEAST_TRUE = 1 / 8, 7 / 8  # of 40: 5 and 35

Rates = dict[str, list[float]]  # by cell, a block each


class Paced(Softmax):
    """Its steps take as long as they are told to."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def gradients(self, model: nn.Module, batch: Batch, weight: float) -> float:
        began = time.perf_counter()
        loss = super().gradients(model, batch, weight)
        _spin(began + self.seconds)
        return loss


class Computing(LeNet):
    """Its computing takes so many times as long."""

    def __init__(self, times: float) -> None:
        self.times = times

    def gradients(self, model: nn.Module, batch: Batch, weight: float) -> float:
        began = time.perf_counter()
        loss = super().gradients(model, batch, weight)
        _spin(began + self.times * (time.perf_counter() - began))
        return loss


def _spin(end: float) -> None:
    while time.perf_counter() < end:
        pass


TIMES = {"A": 1.0, "A'": 1.0, "B": SLOWED}


def compare(asked: argparse.Namespace, seed: int, out: Path) -> Rates:
    """Samples a second of each cell in every block.

    There are as many blocks as the noise asks for, whatever the ratios are: until so many would
    find a difference of SURELY.
    """
    found: Rates = {name: [] for name in TIMES}
    for repeat, cell in blocks(len(TIMES), asked.most, seed):
        if len(found["A"]) == len(found["A'"]) == len(found["B"]) == repeat >= asked.repeats:
            pairs = [(found["A"], found["A'"]), (found["A"], found["B"])]
            needed = [repeats_needed(*pair, SURELY) for pair in pairs]
            if all(count is not None and count <= repeat for count in needed):
                break
        name = list(TIMES)[cell]
        found[name].append(_rate(asked, TIMES[name], repeat, out))
    return found


def _rate(asked: argparse.Namespace, times: float, seed: int, out: Path) -> float:
    run = api.fit(
        Computing(times) if asked.computing else Paced(STEP * times),
        out=out,
        data=f"synthetic:10000x{'1x28x28' if asked.computing else '20'}",
        strategy="independent" if asked.computing else "single",
        workers=len(my_cores()) if asked.computing else 1,
        threads=1,
        steps=asked.steps,
        batch=64,
        evaluate="never",
        checkpoint_every=0.0,
        seed=seed,
    )
    return float(run.throughput["samples_per_second"])


def called(comparisons: list[Rates], name: str) -> int:
    """How many of them said that this cell is different from A."""
    return sum(bool(differs(ratio(rates[name], rates["A"]))) for rates in comparisons)


def told(comparisons: list[Rates]) -> list[str]:
    """How many of each were called different, and how large the noise was."""
    lines = []
    for name in ("A'", "B"):
        ratios = [ratio(rates[name], rates["A"]) for rates in comparisons]
        values = [found.value for found in ratios]
        halves = [found.relative or 0.0 for found in ratios]
        lines.append(
            f"{name:2} against A: {called(comparisons, name)} of {len(ratios)} called different; "
            f"ratio {statistics.median(values):.4f} ({min(values):.4f} to {max(values):.4f}), "
            f"intervals ± {100 * statistics.median(halves):.2f} % in the median"
        )
    counts = [len(rates["A"]) for rates in comparisons]
    lines.append(f"blocks a comparison: median {statistics.median(counts):.0f}, most {max(counts)}")
    return lines


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--comparisons", type=int, default=40)
    parser.add_argument("--repeats", type=int, default=8, help="blocks a comparison has at least")
    parser.add_argument("--most", type=int, default=24, help="and at most")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--computing", action="store_true", help="LeNet on every core")
    parser.add_argument("--minutes", type=float, default=60.0, help="stop after so many")
    parser.add_argument("--keep", type=Path, help="go on with what is in this file, and add to it")
    args = parser.parse_args(arguments)
    kept = args.keep.read_text().splitlines() if args.keep and args.keep.exists() else []
    comparisons: list[Rates] = [json.loads(line) for line in kept]
    end, took = time.monotonic() + 60 * args.minutes, 0.0
    while len(comparisons) < args.comparisons and time.monotonic() + took < end:
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as scratch:
            comparisons.append(compare(args, len(comparisons), Path(scratch)))
        took = time.monotonic() - began
        if args.keep:
            with args.keep.open("a") as file:
                file.write(json.dumps(comparisons[-1]) + "\n")
        print(f"{len(comparisons)} of {args.comparisons}, {took:.1f} s", file=sys.stderr)
    print("\n".join(told(comparisons)))
    if len(comparisons) < args.comparisons:
        return 0
    false, true = (called(comparisons, name) / len(comparisons) for name in ("A'", "B"))
    return 0 if false <= MOST_FALSE and true >= LEAST_TRUE else 1


if __name__ == "__main__":
    sys.exit(main())
