"""What checkpoints cost: a model of 20 million parameters, with one each 5 seconds.

    python -m bench.checkpoint                     about ten minutes

Two runs of the same kind differ by more than is to be measured. So steps around a checkpoint, from
its first copy to the removal of an older one, are set against those right before and after, of the
same run: what they took longer, over the seconds between two checkpoints, is what one costs.
`single` has one worker, with a thread for each core. Told are the mean over all checkpoints and its
standard error.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import numpy as np

import paceline
from bench.catalog import CHECKPOINT, ENOUGH
from bench.findings import Findings, tell
from bench.records import records
from paceline.store.steps import Steps

EVERY = 5.0  # seconds between checkpoints
BEFORE, AFTER = 1.4, 0.4  # seconds around the moment in which one is committed
BESIDE = 1.5  # seconds on either side of that, with which they are compared
MOST = 0.02  # of the throughput
RUNS: dict[str, dict[str, Any]] = {
    "single": {"strategy": "single"},
    "allreduce": {"strategy": "allreduce", "workers": 2},
    "ps-sync shm": {"strategy": "ps-sync", "workers": 2, "transport": "shm"},
    "ps-async shm": {"strategy": "ps-async", "workers": 2, "transport": "shm"},
}


def costs(steps: Steps, commits: list[float]) -> list[float]:
    """Of each checkpoint, the share of the time from one to the next that steps took longer."""
    ends, took = steps["time"][1:], np.diff(steps["time"])
    found = []
    for commit in commits:
        begin, end = commit - BEFORE, commit + AFTER
        around = took[(ends > begin) & (ends <= end)]
        beside = took[
            ((ends > begin - BESIDE) & (ends <= begin)) | ((ends > end) & (ends <= end + BESIDE))
        ]
        found.append(float(around.sum() - len(around) * beside.mean()) / EVERY)
    return found


def amid(workers: list[Steps], commits: list[float]) -> list[float]:
    """Those around which all workers took steps for long enough."""
    first = max(float(steps["time"][1]) for steps in workers) + BESIDE + BEFORE
    last = min(float(steps["time"][-1]) for steps in workers) - BESIDE - AFTER
    return [commit for commit in commits if first < commit < last]


class Commits:
    """When checkpoints of the run in `out` were committed, in seconds of the run."""

    def __init__(self, out: Path) -> None:
        self._out = out
        self._over = threading.Event()
        self._found: dict[str, float] = {}
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._over.wait(EVERY / 10):
            for path in self._out.glob("*/checkpoints/*/manifest.json"):
                if path.parent.name not in self._found:
                    self._found[path.parent.name] = json.loads(path.read_text())["time"]

    def end(self) -> list[float]:
        self._over.set()
        self._thread.join()
        return sorted(self._found.values())


def measured(how: dict[str, Any], steps: int) -> list[float]:
    """What each checkpoint of one run cost, the mean over its workers."""
    with tempfile.TemporaryDirectory() as out:
        watch = Commits(Path(out))
        run = paceline.fit(
            "mlp",
            batch=64,
            steps=steps,
            optimizer="sgd",
            lr=0.01,
            evaluate="never",
            checkpoint_every=EVERY,
            out=Path(out),
            **how,
        )
        workers = records(run)
        commits = amid(workers, watch.end())
        each = [costs(steps, commits) for steps in workers]
    return [statistics.mean(one) for one in zip(*each, strict=True)]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--steps", type=int, default=300)
    args = parser.parse_args(arguments)
    if args.repeats < 1 or args.steps < 1:
        parser.error("--repeats and --steps must be at least 1.")
    found: dict[str, list[float]] = {name: [] for name in RUNS}
    for repeat in range(args.repeats):
        for name, how in RUNS.items():
            found[name] += (now := measured(how, args.steps))
            told = " ".join(f"{cost:.1%}" for cost in now)
            print(f"{repeat + 1}/{args.repeats} {name}: {told}", file=sys.stderr, flush=True)
    result = Findings()
    for name, all_of in found.items():
        if len(all_of) < 2:
            raise SystemExit(f"{name}: too few checkpoints in {args.steps} steps.")
        mean = statistics.mean(all_of)
        error = statistics.stdev(all_of) / len(all_of) ** 0.5
        told = f"{mean:.2%} ± {error:.2%} of {len(all_of)} checkpoints"
        result.want(f"{name}: at most {MOST:.0%}", told, mean <= MOST)
    tell(CHECKPOINT, result, args.repeats, whole=args.repeats >= ENOUGH)


if __name__ == "__main__":
    main()
