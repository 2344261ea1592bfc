"""What measuring costs: steps that are measured against steps that are not, in turns in one run.

    python -m bench.instrumentation               about three minutes

Softmax, batch 200, two workers over shared memory: steps as short as there are. Off means that no
step is stamped, recorded or told of, and that nothing is written on slates. There is no such
switch: the task replaces all that, in its worker, by what returns at once, and puts it back 200
steps later; so a ratio is that of neighbours, a fifth of a second apart, and the machine's moods
fall on both. The supervisor's part (sampling, looking for stalls, hearing progress) is the CPU time
that runs with it take more than runs without, in turns as well, as if all of it were taken from
the workers.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
from torch import nn

import paceline
from bench.balance import role
from paceline.data.base import Batch
from paceline.data.sampler import Lot
from paceline.launch.sampling import Sampling
from paceline.launch.watching import Watch
from paceline.measure.spread import Spread, spread
from paceline.tasks.softmax import Softmax

WORKERS, BATCH = 2, 200
BLOCK = 200  # steps in which nothing changes
WARM = 4  # blocks before it counts
LEAST = 0.99
STAMPED = (
    *("paceline.worker.loop", "paceline.worker.batches", "paceline.tasks.softmax"),
    *("paceline.exchange.base", "paceline.exchange.shared_small", "paceline.exchange.shared_async"),
)
_clock = time.monotonic


class InTurns(Softmax):
    """Every other block of its steps is not measured. When each began is told in a file."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.taken = 0
        self.loud: Callable[[], None] | None = None

    def gradients(self, model: nn.Module, batch: Batch, weight: float) -> float:
        if not self.taken % BLOCK:
            self.turn(self.taken // BLOCK)
        self.taken += 1
        return super().gradients(model, batch, weight)

    def turn(self, block: int) -> None:
        now = _clock()
        with (Path(self.folder) / role()).open("ab") as file:
            file.write(np.array([now]).tobytes())
        if self.loud is not None:
            self.loud()
            self.loud = None
        elif block % 2:
            self.loud = hush()


def hush() -> Callable[[], None]:
    """From now on nothing is measured in this worker, until what is returned is called."""
    import paceline.worker.reporter as reporting
    from paceline.transport.slate import Slate

    def step(self: reporting.Reporter, lot: Lot, *_: Any) -> None:
        """What a worker has to know of itself, and nothing else."""
        self.taken += 1
        self.samples += len(lot.rows)
        self.epoch = lot.epoch + lot.last

    zero = itertools.repeat(0.0).__next__
    stopped = SimpleNamespace(monotonic=zero, perf_counter=zero)
    replaced: list[tuple[Any, str, Any]] = [(reporting.Reporter, "step", step)]
    replaced += [(import_module(name), "time", stopped) for name in STAMPED]
    replaced += [(Slate, v, lambda *_: 0) for v in ("at", "waits", "back", "begin", "beat")]
    before = [(where, name, getattr(where, name)) for where, name, _ in replaced]

    def put(things: list[tuple[Any, str, Any]]) -> None:
        for where, name, thing in things:
            setattr(where, name, thing)

    put(replaced)
    return lambda: put(before)


@contextmanager
def unwatched() -> Iterator[None]:
    """In the supervisor: neither samples nor looks."""
    with (
        mock.patch.object(Sampling, "turn"),
        mock.patch.object(Sampling, "due", return_value=0.5),
        mock.patch.object(Sampling, "sample"),
        mock.patch.object(Watch, "turn"),
    ):
        yield


def train(strategy: str, steps: int, folder: str) -> None:
    run = paceline.fit(
        InTurns(folder),
        **{"strategy": strategy, "transport": "shm", "workers": WORKERS, "batch": BATCH},
        **{"steps": steps, "evaluate": "never", "checkpoint_every": 0},
        out=Path(folder) / "runs",
    )
    if run.status != "done":
        raise SystemExit(f"a run was {run.status}: no rate.")


def ratios(began: list[float]) -> list[float]:
    """Of throughput, measured over not: each quiet block beside the mean of its two neighbours."""
    seconds = np.diff(began)[WARM:]
    loud, quiet, after = seconds[:-2:2], seconds[1:-1:2], seconds[2::2]
    return [float(2 * q / (a + b)) for a, q, b in zip(loud, quiet, after, strict=False)]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--strategies", default="ps-sync,ps-async", help="by comma")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--steps", type=int, default=6000, help="of each worker")
    args = parser.parse_args(arguments)
    if args.repeats < 1 or args.steps < (WARM + 4) * BLOCK:
        parser.error(f"--repeats must be at least 1, --steps at least {(WARM + 4) * BLOCK}.")
    for strategy in args.strategies.split(","):
        found, used = [], []
        for repeat in range(args.repeats):
            cpu = {}
            for watched in (True, False) if repeat % 2 else (False, True):
                with tempfile.TemporaryDirectory() as folder:
                    before = time.process_time()
                    with nullcontext() if watched else unwatched():
                        train(strategy, args.steps, folder)
                    cpu[watched] = time.process_time() - before
                    for worker in range(WORKERS):
                        began = np.fromfile(Path(folder) / f"worker-{worker}").tolist()
                        found += ratios(began)
            used.append((cpu[True] - cpu[False]) / (began[-1] - began[0]))
            told = f"{np.median(found):.4f}, supervisor {100 * used[-1]:.2f} % of a core"
            print(f"{repeat + 1}/{args.repeats} {strategy}: {told}", file=sys.stderr, flush=True)
        tell(strategy, spread(found), spread(used))


def tell(strategy: str, workers: Spread, supervisor: Spread) -> None:
    total = workers.value * (1 - max(0.0, supervisor.value))
    met = "met" if total >= LEAST else "not met"
    print(f"{strategy}: throughput on over off {total:.4f}, wanted {LEAST}: {met}")
    print(f"  in workers {_interval(workers)}")
    print(f"  the supervisor takes {_interval(supervisor)} of a core")


def _interval(found: Spread) -> str:
    low, high = (found.value if at is None else at for at in (found.low, found.high))
    return f"{found.value:.4f} ({low:.4f} to {high:.4f}, of {found.repeats})"


if __name__ == "__main__":
    main()
