"""What measuring costs: steps that are measured against steps that are not, in turns in one run.

    python -m bench.instrumentation               about six minutes

Softmax, batch 200, two workers over shared memory: steps as short as there are. Off means that no
step is stamped, recorded or told of, and that nothing is written on slates. There is no such
switch: the task replaces all that, in its worker, by what returns at once, and puts it back after a
while; so a ratio is that of neighbours, some hundredths of a second apart, and the machine's moods
fall on both alike. Runs in which it replaces nothing show what the bench makes of no difference.

    steps        how long a step takes, measured over not: of each block the mean of its quicker
                 steps, for the slowest tell of the machine, and of rows that are made now and then
    telling      what making rows and telling takes of a step, in CPU time
    supervisor   (sampling, looking for stalls, hearing progress) the CPU time that runs with it
                 take more than runs without, as if all of it were taken from the workers

Throughput, on over off, is 1 / (steps + telling), less what the supervisor takes.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import numpy.typing as npt
from torch import nn

import paceline
from bench.balance import role
from bench.catalog import ENOUGH, INSTRUMENTATION
from bench.findings import Findings, tell
from paceline.data.base import Batch
from paceline.data.sampler import Lot
from paceline.launch.beat import Beat
from paceline.launch.sampling import Sampling
from paceline.launch.watching import Watch
from paceline.measure.spread import Spread, spread
from paceline.tasks.softmax import Softmax

WORKERS, BATCH = 2, 200
BLOCK = 60  # steps in which nothing changes
QUIET = (1, 2)  # of each four blocks: of a pair, either comes first as often
WARM = 20  # blocks before it counts
AFTER = 4  # steps after a change that do not count
QUICKER = 0.75  # of a block's steps count
LEAST = 0.99
HEAD = (
    *("", "steps, measured over not", "where nothing is turned off"),
    *("telling, of a step", "supervisor, of a core"),
)
STAMPED = (
    *("paceline.worker.loop", "paceline.worker.batches", "paceline.tasks.softmax"),
    *("paceline.exchange.base", "paceline.exchange.shared_small", "paceline.exchange.shared_async"),
)
_clock = time.monotonic
_used = time.thread_time  # the supervisor, which telling wakes, is told by itself


class InTurns(Softmax):
    """Half of its steps are not measured, if it `hushes`. When each step began is told in a file,
    and after them how long telling took of the steps that are."""

    def __init__(self, folder: str, hushes: bool, steps: int) -> None:
        self.folder = folder
        self.hushes = hushes
        self.steps = steps
        self.began = np.zeros(steps + 1)
        self.taken = 0
        self.telling: Telling | None = None
        self.loud: Callable[[], None] | None = None
        self.slates: list[Any] | None = None  # found before it counts

    def gradients(self, model: nn.Module, batch: Batch, weight: float) -> float:
        if self.taken < self.steps:
            self.began[self.taken] = _clock()
            if not self.taken % BLOCK:
                self.turn(self.taken // BLOCK)
            self.taken += 1
            if self.taken == self.steps:
                self.tell()
        return super().gradients(model, batch, weight)

    def turn(self, block: int) -> None:
        if self.slates is None:
            self.slates, self.telling = own_slates(), Telling()
        quiet = self.hushes and block % 4 in QUIET
        if quiet and self.loud is None:
            self.loud = hush(self.slates)
        elif self.loud is not None and not quiet:
            self.loud()
            self.loud = None

    def tell(self) -> None:
        assert self.telling is not None
        # Rows are made of the steps that are told of, but it is told twice a second.
        part = 2 if self.hushes else 1  # of whose steps was told: half, or all
        self.began[-1] = part * self.telling.rows + self.telling.seconds
        self.began.tofile(Path(self.folder) / role())


class Telling:
    """How long this worker's reporter tells, and makes `rows`, once this is made."""

    def __init__(self) -> None:
        from paceline.store.steps import StepWriter
        from paceline.worker.reporter import Reporter

        self.seconds = self.rows = 0.0
        does, settle = Reporter.tell, StepWriter.settle

        def settles(*how: Any) -> None:
            began = _used()
            settle(*how)
            self.rows += _used() - began

        def tells(*how: Any) -> None:
            began, rows = _used(), self.rows
            does(*how)  # which makes rows
            self.seconds += _used() - began - (self.rows - rows)

        Reporter.tell, StepWriter.settle = tells, settles  # type: ignore[method-assign]


def hush(slates: Iterable[Any] = ()) -> Callable[[], None]:
    """From now on nothing is measured in this worker, until what is returned is called."""
    import paceline.worker.reporter as reporting
    from paceline.transport.slate import PAGE, Slate

    def step(self: reporting.Reporter, lot: Lot, count: int, *rest: Any) -> None:
        """What a worker has to know of itself, and nothing else."""
        self.taken += 1
        self.samples += count
        self._lot, self._outcome = lot, rest[-1]

    zero = itertools.repeat(0.0).__next__
    stopped = SimpleNamespace(monotonic=zero, perf_counter=zero)
    replaced: list[tuple[Any, str, Any]] = [(reporting.Reporter, "step", step)]
    replaced += [(import_module(name), "time", stopped) for name in STAMPED]
    replaced += [(Slate, v, lambda *_: 0) for v in ("at", "waits", "back", "begin", "beat")]
    # What a step writes by itself goes to a list: five stores, the part of a slate that is left.
    replaced += [(slate, "words", [0] * PAGE) for slate in slates]
    before = [(where, name, getattr(where, name)) for where, name, _ in replaced]

    def put(things: list[tuple[Any, str, Any]]) -> None:
        for where, name, thing in things:
            setattr(where, name, thing)

    put(replaced)
    return lambda: put(before)


def own_slates() -> list[Any]:
    """Of this process."""
    from paceline.transport.slate import Slate

    return [found for found in gc.get_objects() if type(found) is Slate]


@contextmanager
def unwatched() -> Iterator[None]:
    """In the supervisor: neither samples nor looks."""
    with (
        mock.patch.object(Sampling, "turn"),
        mock.patch.object(Sampling, "sample"),
        mock.patch.object(Watch, "turn"),
        mock.patch.object(Beat, "due", return_value=0.5),
    ):
        yield


class Found(NamedTuple):
    """Of a run: ratios of neighbours, what telling takes of a step, and how long the run took."""

    ratios: list[float]
    telling: list[float]
    seconds: float


def train(strategy: str, steps: int, hushes: bool = True) -> Found:
    with tempfile.TemporaryDirectory() as folder:
        _run(strategy, steps, folder, hushes)
        told = [np.fromfile(Path(folder) / f"worker-{worker}") for worker in range(WORKERS)]
    began, telling = [one[:-1] for one in told], [float(one[-1]) for one in told]
    seconds = float(began[0][-1] - began[0][0])
    return Found(
        [ratio for times in began for ratio in ratios(times)],
        [one / seconds for one in telling],
        seconds,
    )


def _run(strategy: str, steps: int, folder: str, hushes: bool) -> None:
    # Whoever leases more than half of the samples takes more steps than these: they do not count.
    run = paceline.fit(
        InTurns(folder, hushes, steps),
        **{"strategy": strategy, "transport": "shm", "workers": WORKERS, "batch": BATCH},
        **{"steps": steps + steps // 4, "evaluate": "never", "checkpoint_every": 0},
        out=Path(folder) / "runs",
    )
    if run.status != "done":
        raise SystemExit(f"a run was {run.status}: no rate.")


def ratios(began: npt.NDArray[np.float64]) -> list[float]:
    """Of how long a step takes, measured over not: a ratio for each pair of neighbours."""
    blocks = len(began) // BLOCK
    durations = np.diff(began[: blocks * BLOCK], append=np.nan).reshape(blocks, BLOCK)
    quicker = np.sort(durations[WARM:, AFTER:-1], axis=1)
    means = quicker[:, : int(QUICKER * quicker.shape[1])].mean(axis=1)
    fours = means[: len(means) // 4 * 4].reshape(-1, 4)
    return [float(on / off) for a, b, c, d in fours for on, off in ((a, b), (d, c))]


def middle(found: list[float]) -> Spread:
    """The mean of their middle half, in logarithms: where nothing differs it is 1, however far and
    unevenly single blocks are off, and unlike the median it has what happens in some blocks only.
    """
    drawn = np.random.default_rng(0).choice(np.log(found), (2000, len(found)))
    of = [_middle(np.log(found)), *np.percentile(_middle(drawn), (2.5, 97.5))]
    value, low, high = np.exp(of)
    return Spread(value=value, low=low, high=high, repeats=len(found))


def _middle(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    count = values.shape[-1]
    ranked = np.sort(values, axis=-1)[..., count // 4 : count - count // 4]
    return ranked.mean(axis=-1)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--strategies", default="ps-sync,ps-async", help="by comma")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--steps", type=int, default=12_000, help="of each worker")
    args = parser.parse_args(arguments)
    if args.repeats < 1 or args.steps < (WARM + 4) * BLOCK:
        parser.error(f"--repeats must be at least 1, --steps at least {(WARM + 4) * BLOCK}.")
    result = Findings(HEAD)
    for strategy in args.strategies.split(","):
        found, same, telling, used = [], [], [], []
        for repeat in range(args.repeats):
            cpu, seconds = {}, 0.0
            for watched in (True, False) if repeat % 2 else (False, True):
                before = time.process_time()
                with nullcontext() if watched else unwatched():
                    one = train(strategy, args.steps)
                cpu[watched], seconds = time.process_time() - before, one.seconds
                found += one.ratios
                telling += one.telling
            same += train(strategy, args.steps, hushes=False).ratios
            used.append((cpu[True] - cpu[False]) / seconds)
            now = f"steps {middle(found).value:.4f}, telling {statistics.median(telling):.4f}"
            told = f"{now}, supervisor {100 * used[-1]:.2f} % of a core"
            print(f"{repeat + 1}/{args.repeats} {strategy}: {told}", file=sys.stderr, flush=True)
        add(result, strategy, middle(found), statistics.median(telling), middle(same), spread(used))
    names = ("strategies", "steps")
    usual = all(getattr(args, name) == parser.get_default(name) for name in names)
    tell(INSTRUMENTATION, result, args.repeats, whole=usual and args.repeats >= ENOUGH)


def add(
    result: Findings,
    strategy: str,
    steps: Spread,
    telling: float,
    same: Spread,
    supervisor: Spread,
) -> None:
    total = (1 - max(0.0, supervisor.value)) / (steps.value + telling)
    measured = _interval(steps), _interval(same), f"{telling:.4f}", _interval(supervisor)
    result.rows.append((strategy, *measured))
    asked = f"{strategy}: throughput on over off {LEAST}"
    result.want(asked, f"{total:.4f}", total >= LEAST)


def _interval(found: Spread) -> str:
    low, high = (found.value if at is None else at for at in (found.low, found.high))
    return f"{found.value:.4f} ({low:.4f} to {high:.4f}, of {found.repeats})"


if __name__ == "__main__":
    main()
