"""What measuring costs: whole runs as they are, against the same with all of it off.

    python -m bench.instrumentation               about three minutes

Softmax, batch 200, two workers over shared memory: steps as short as there are. Off means that no
step is stamped, recorded or told of, nothing is written on slates, and the supervisor neither
samples nor looks for stalls. There is no such switch: workers that are to be quiet have all that
replaced when they load this task, by what returns at once, so what is left is a few calls that do
nothing. Runs take turns. How fast they are is counted by the task itself, alike in both.
"""

from __future__ import annotations

import argparse
import itertools
import mmap
import struct
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from torch import nn

import paceline
from bench.balance import role
from paceline.data.base import Batch, Data
from paceline.data.sampler import Lot
from paceline.launch.sampling import Sampling
from paceline.launch.watching import Watch
from paceline.measure.spread import Spread, paired, spread
from paceline.tasks.softmax import Softmax

WORKERS, BATCH = 2, 200
WARM = 500  # steps before it counts
EVERY = 250  # steps between looks at the clock
LEAST = 0.99
STAMPED = (
    *("paceline.worker.loop", "paceline.worker.batches", "paceline.tasks.softmax"),
    *("paceline.exchange.base", "paceline.exchange.shared_small", "paceline.exchange.shared_async"),
)
TOLD = "<4d"  # steps and time: when it began to count, and by now
_clock = time.monotonic


class Counted(Softmax):
    """Softmax that counts its steps, in files of `folder`."""

    def __init__(self, folder: str, quiet: bool) -> None:
        self.folder = folder
        self.quiet = quiet
        self.taken = 0

    def data(self) -> Data:
        if self.quiet and role().startswith("worker-"):
            hush()
        return super().data()

    def gradients(self, model: nn.Module, batch: Batch, weight: float) -> float:
        self.taken += 1
        if self.taken >= WARM and not self.taken % EVERY:
            self.tell()
        return super().gradients(model, batch, weight)

    def tell(self) -> None:
        now = _clock()
        if self.taken == WARM:
            path = Path(self.folder) / role()
            path.write_bytes(bytes(struct.calcsize(TOLD)))
            with path.open("r+b") as file:
                self.memory = mmap.mmap(file.fileno(), 0)
            self.began = self.taken, now
        struct.pack_into(TOLD, self.memory, 0, *self.began, self.taken, now)


def hush() -> None:
    """In a worker: from now on nothing is measured."""
    import paceline.worker.reporter as reporting
    from paceline.transport.slate import Slate

    zero = itertools.repeat(0.0).__next__
    for name in STAMPED:
        import_module(name).time = SimpleNamespace(monotonic=zero, perf_counter=zero)  # type: ignore[attr-defined]
    for verb in ("at", "waits", "back", "begin", "beat"):
        setattr(Slate, verb, lambda *_: 0)

    def step(self: reporting.Reporter, lot: Lot, *_: Any) -> None:
        """What a worker has to know of itself, and nothing else."""
        self.taken += 1
        self.samples += len(lot.rows)
        self.epoch = lot.epoch + lot.last

    reporting.Reporter.step = step  # type: ignore[method-assign]


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


def rate(strategy: str, steps: int, *, quiet: bool) -> float:
    """Samples a second of both workers together."""
    with tempfile.TemporaryDirectory() as folder:
        with unwatched() if quiet else nullcontext():
            run = paceline.fit(
                Counted(folder, quiet),
                strategy=strategy,
                transport="shm",
                workers=WORKERS,
                batch=BATCH,
                steps=steps,
                evaluate="never",
                checkpoint_every=0,
                out=Path(folder) / "runs",
            )
        if run.status != "done":
            raise SystemExit(f"a run was {run.status}: no rate.")
        rates = []
        for worker in range(WORKERS):
            counted = (Path(folder) / f"worker-{worker}").read_bytes()
            first, began, last, ended = struct.unpack(TOLD, counted)
            rates.append(BATCH * (last - first) / (ended - began))
        return sum(rates)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--strategies", default="ps-sync,ps-async", help="by comma")
    parser.add_argument("--repeats", type=int, default=11)
    parser.add_argument("--steps", type=int, default=6000, help="of each worker")
    args = parser.parse_args(arguments)
    if args.repeats < 1 or args.steps < 2 * WARM:
        parser.error(f"--repeats must be at least 1 and --steps at least {2 * WARM}.")
    for strategy in args.strategies.split(","):
        found: dict[bool, list[float]] = {True: [], False: []}
        for repeat in range(args.repeats):
            for quiet in (True, False) if repeat % 2 else (False, True):
                found[quiet].append(rate(strategy, args.steps, quiet=quiet))
            told = f"on {found[False][-1]:,.0f}, off {found[True][-1]:,.0f} samples/s"
            print(f"{repeat + 1}/{args.repeats} {strategy}: {told}", file=sys.stderr, flush=True)
        ratio = paired(found[False], found[True])
        met = "met" if ratio.value >= LEAST else "not met"
        print(f"{strategy}: on over off {_interval(ratio, '.4f')}, wanted {LEAST}: {met}")
        print(f"  on {_interval(spread(found[False]), ',.0f')} samples/s")
        print(f"  off {_interval(spread(found[True]), ',.0f')} samples/s")


def _interval(found: Spread, form: str) -> str:
    low, high = (found.value if at is None else at for at in (found.low, found.high))
    return f"{found.value:{form}} ({low:{form}} to {high:{form}}, {found.repeats} repeats)"


if __name__ == "__main__":
    main()
