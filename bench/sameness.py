"""Are runs that do the same called the same, and runs that are 5 % slower called slower?

    python -m bench.sameness --keep same.jsonl --minutes 4       as often as it takes

A comparison is a small sweep of three cells: A, the same again (A'), and B, whose computing takes
1.05 times as long (`--inject slow:worker-0x1.05`). Blocks have each once, in random order, and
A'/A and B/A are judged as `paceline sweep` judges them: different if the 95 % interval of the ratio
leaves out 1. LeNet on synthetic images, one worker with one thread, without scoring. The file keeps
what is measured, so that it can be done in parts.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from paceline import api
from paceline.diagnose.repeats import differs, ratio, repeats_needed
from paceline.spec import RunSpec
from paceline.study.order import blocks

SLOWED = 1.05
CELLS: dict[str, dict[str, Any]] = {
    "A": {},
    "A'": {},
    "B": {"inject": (f"slow:worker-0x{SLOWED}",)},
}
MOST_FALSE, LEAST_TRUE = 1 / 8, 7 / 8  # of 40: 5 and 35

Rates = dict[str, list[float]]  # by cell, a block each


def compare(spec: RunSpec, repeats: int, seed: int, out: Path) -> Rates:
    """Samples a second of each cell in every block."""
    found: Rates = {name: [0.0] * repeats for name in CELLS}
    for repeat, cell in blocks(len(CELLS), repeats, seed):
        name = list(CELLS)[cell]
        run = api.execute(spec.with_(**CELLS[name], seed=repeat), out=out)
        found[name][repeat] = run.throughput["samples_per_second"]
    return found


def told(all_rates: list[Rates]) -> list[str]:
    """How many of each were called different, and how large the noise was."""
    lines = []
    for name in ("A'", "B"):
        ratios = [ratio(rates[name], rates["A"]) for rates in all_rates]
        called = sum(bool(differs(found)) for found in ratios)
        values = [found.value for found in ratios]
        halves = [found.relative or 0.0 for found in ratios]
        lines.append(
            f"{name:2} against A: {called} of {len(ratios)} called different; ratio "
            f"{statistics.median(values):.4f} ({min(values):.4f} to {max(values):.4f}), "
            f"intervals ± {100 * statistics.median(halves):.2f} % in the median"
        )
    needed = [repeats_needed(rates["A'"], rates["A"], SLOWED - 1) for rates in all_rates]
    known = [count for count in needed if count]
    if known:
        lines.append(
            f"repeats that 5 % would need, by the noise of each comparison: median "
            f"{statistics.median(known):.0f}, most {max(known)}"
        )
    return lines


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--comparisons", type=int, default=40)
    parser.add_argument("--repeats", type=int, default=6)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--minutes", type=float, default=60.0, help="stop after so many")
    parser.add_argument("--keep", type=Path, help="go on with what is in this file, and add to it")
    args = parser.parse_args(arguments)
    kept = args.keep.read_text().splitlines() if args.keep and args.keep.exists() else []
    rates: list[Rates] = [json.loads(line) for line in kept]
    spec = RunSpec(
        task="lenet",
        data="synthetic:20000x1x28x28",
        threads=1,
        steps=args.steps,
        batch=args.batch,
        evaluate="never",
        checkpoint_every=0.0,
    )
    end = time.monotonic() + 60 * args.minutes
    took = 0.0
    while len(rates) < args.comparisons and time.monotonic() + took < end:
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as scratch:
            rates.append(compare(spec, args.repeats, len(rates), Path(scratch)))
        took = time.monotonic() - began
        if args.keep:
            with args.keep.open("a") as file:
                file.write(json.dumps(rates[-1]) + "\n")
        print(f"{len(rates)} of {args.comparisons}, {took:.1f} s", file=sys.stderr)
    print("\n".join(told(rates)))
    if len(rates) < args.comparisons:
        return 0
    false, true = (
        sum(bool(differs(ratio(each[name], each["A"]))) for each in rates) / len(rates)
        for name in ("A'", "B")
    )
    return 0 if false <= MOST_FALSE and true >= LEAST_TRUE else 1


if __name__ == "__main__":
    sys.exit(main())
