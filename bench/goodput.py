"""Roles are killed every few seconds: how good a run still gets, and how fast it still is.

    python -m bench.goodput

LeNet on MNIST, two workers. Whom a kill meets is random, of workers and servers that have a process
of their own; `--inject` does it, beginning half a period into training. Runs with and without kills
take turns.

Accuracy, of `ps-async` over TCP with two servers, without standbys and with them: 1,520 steps in
all, which take some seconds, so there a kill comes every second; then as many steps as take a
minute, with a kill every ten seconds.

Goodput, by strategy: samples a second over the whole run, with a kill every thirty seconds, over
those of the run without. Only samples of steps that were recorded count; what a worker had done and
not yet recorded when it was killed does not.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import paceline
from bench.catalog import ENOUGH, GOODPUT
from bench.findings import Findings, tell
from bench.records import records, speed
from bench.tables import spread

WORKERS, SERVERS, BATCH = 2, 2, 64
STEPS = 1520 // WORKERS  # of each worker
PROBE = 400  # steps that tell how many take so long
MOST = 0.3  # points of accuracy that kills may cost
LEAST = 0.90  # of the speed that must be left
RESTARTS = 1000  # as often as it takes
LONGER = 4  # times as long as the run without them, kills may go on

TCP: dict[str, Any] = {"strategy": "ps-async", "transport": "tcp", "servers": SERVERS}
CREWS = {"without standbys": TCP, "with standbys": TCP | {"replicas": 1}}
STRATEGIES: dict[str, dict[str, Any]] = {
    "ps-sync shm": {"strategy": "ps-sync", "transport": "shm"},
    "ps-async shm": {"strategy": "ps-async", "transport": "shm"},
    "ps-async tcp": TCP,
    "allreduce": {"strategy": "allreduce"},
}


class Ended(NamedTuple):
    """What a run came to."""

    accuracy: float
    rate: float
    deaths: int


class Pair(NamedTuple):
    """The same run without kills and with them."""

    calm: Ended
    harmed: Ended

    @property
    def points(self) -> float:
        """Of accuracy, that the kills cost."""
        return 100 * (self.calm.accuracy - self.harmed.accuracy)

    @property
    def goodput(self) -> float:
        return self.harmed.rate / self.calm.rate


def kills(how: dict[str, Any], every: float, seconds: float, rng: Random) -> list[str]:
    """A kill each period, for so many seconds."""
    roles = [f"worker-{index}" for index in range(WORKERS)]
    roles += [f"server-{index}" for index in range(how.get("servers", 0))]
    moments = [every * (number + 0.5) for number in range(round(seconds / every))]
    return [f"kill:{rng.choice(roles)}@{moment:.3f}s" for moment in moments]


def train(out: Path, how: dict[str, Any], steps: int, faults: Sequence[str] = ()) -> Ended:
    run = paceline.fit(
        "lenet",
        workers=WORKERS,
        batch=BATCH,
        steps=steps,
        evaluate="end",
        inject=list(faults),
        max_restarts=RESTARTS,
        out=out,
        **how,
    )
    deaths = sum(event["kind"] == "died" for event in run.summary["events"])
    return Ended(float(run.quality["accuracy"]), speed(records(run)), deaths)


def beside(out: Path, how: dict[str, Any], steps: int, every: float, rng: Random) -> Pair:
    """Train without kills and with one every so many seconds."""
    calm = train(out, how, steps)
    seconds = steps * BATCH * WORKERS / calm.rate
    return Pair(calm, train(out, how, steps, kills(how, every, LONGER * seconds, rng)))


def lasting(out: Path, how: dict[str, Any], seconds: float) -> int:
    """About how many steps each worker takes in that time."""
    return max(1, round(train(out, how, PROBE).rate * seconds / (BATCH * WORKERS)))


def told(name: str, pairs: list[Pair]) -> str:
    last = pairs[-1]
    return (
        f"{name}: {last.harmed.deaths} deaths, accuracy {100 * last.harmed.accuracy:.2f} % "
        f"({-last.points:+.2f}), {last.harmed.rate:,.0f} samples/s ({last.goodput:.3f})"
    )


def lost(found: Findings, name: str, pairs: list[Pair]) -> None:
    """What kills cost of the accuracy."""
    points = [pair.points for pair in pairs]
    found.rows.append(row(name, pairs))
    met = statistics.median(points) <= MOST
    found.want(f"{name}: at most {MOST} points less", spread(points, "+.2f"), met)


def left(found: Findings, name: str, pairs: list[Pair]) -> None:
    """What they leave of the speed."""
    parts = [pair.goodput for pair in pairs]
    found.rows.append(row(name, pairs))
    met = statistics.median(parts) >= LEAST
    found.want(f"{name}: {LEAST} of the speed", spread(parts, ".3f"), met)


HEAD = ("", "deaths", "accuracy, %", "undisturbed", "samples/s", "undisturbed")


def row(name: str, pairs: list[Pair]) -> tuple[str, ...]:
    """With kills and without."""
    return (
        name,
        spread([float(p.harmed.deaths) for p in pairs], ".0f"),
        spread([100 * p.harmed.accuracy for p in pairs], ".2f"),
        spread([100 * p.calm.accuracy for p in pairs], ".2f"),
        spread([p.harmed.rate for p in pairs], ",.0f"),
        spread([p.calm.rate for p in pairs], ",.0f"),
    )


def turns(
    out: Path,
    crews: dict[str, dict[str, Any]],
    steps: dict[str, int],
    every: float,
    repeats: int,
    rng: Random,
) -> dict[str, list[Pair]]:
    """Every crew in turn, for as many steps as are said for it."""
    found: dict[str, list[Pair]] = {name: [] for name in crews}
    for repeat in range(repeats):
        for name, how in crews.items():
            found[name].append(beside(out, how, steps[name], every, rng))
            print(f"{repeat + 1}/{repeats} {told(name, found[name])}", file=sys.stderr, flush=True)
    return found


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", choices=("accuracy", "goodput"))
    parser.add_argument("--seed", type=int, default=0, help="decides whom a kill meets")
    args = parser.parse_args(arguments)
    if args.repeats < 1:
        parser.error("--repeats must be at least 1.")
    rng, result = Random(args.seed), Findings(HEAD)
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch)
        if args.only != "goodput":
            minute = lasting(out, TCP, 60.0)
            for steps, every in ((STEPS, 1.0), (minute, 10.0)):
                taken = dict.fromkeys(CREWS, steps)
                found = turns(out, CREWS, taken, every, args.repeats, rng)
                for crew, pairs in found.items():
                    name = f"ps-async tcp {crew}, {steps * WORKERS:,} steps, every {every:.0f} s"
                    lost(result, name, pairs)
        if args.only != "accuracy":
            taken = {name: lasting(out, how, 90.0) for name, how in STRATEGIES.items()}
            found = turns(out, STRATEGIES, taken, 30.0, args.repeats, rng)
            for crew, pairs in found.items():
                left(result, f"{crew}, about 90 s, every 30 s", pairs)
    whole = args.only is None and args.repeats >= ENOUGH
    tell(GOODPUT, result, args.repeats, whole=whole)


if __name__ == "__main__":
    main()
