"""Random faults against real runs: `make chaos`.

A trial is a run of a task that counts how often each sample was trained on, with one fault in it:
a role is killed at some moment, or stopped for less or more than its lease, or a connection is cut
or silent for so long. Afterwards all must be as if nothing had been. A trial depends on the seed
and its number alone, as far as the clock allows, so one that failed is done again by itself:

    python -m tools.chaos --seed 7 --only 12
"""

from __future__ import annotations

import argparse
import secrets
import shutil
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

from rich.console import Console
from torch import Tensor

import paceline
from paceline.exchange.catalog import STRATEGIES
from paceline.exchange.layout import in_a_group
from paceline.launch.policy import can_rejoin
from paceline.report.layout import Column, table
from paceline.report.words import number
from paceline.spec import RunSpec
from paceline.spec.inject import LINES
from tools.counting import Counting
from tools.leftovers import leave_mark, leftovers

WORKERS, SERVERS, EPOCHS, LEASE = 2, 2, 12, 1.0
SYNC_EVERY = 4  # steps between two averagings of local-sgd
BATCH, SAMPLES = Counting.batch, Counting.samples
ROUNDS = EPOCHS * SAMPLES // (BATCH * WORKERS)  # of two workers
SECONDS = 1.5  # about how long an undisturbed trial trains
ENDS_WITHIN = 30.0  # seconds that no trial may take
RECOVERS_WITHIN = 2.0  # seconds after a kill
SETTLES_WITHIN = 3.0  # seconds in which processes that were ended must be gone
TASKS = Path(__file__).with_name("counting.py")
WIDE, MIDDLE = "-wide", "-middle"  # end the names of crews whose pushes take a while
ROWS = "-rows"  # and of those whose numbers are rows of a sparse table
MORE = "-more"  # and of those with twice as many workers, and as many samples a round
WIDTH = 110  # of the table, at least
BALANCED = "-balance"  # and of those whose shares follow speed
REPLICAS = "-replicas"  # is in the names of those whose servers have standbys


class TooLong(Exception):
    """A trial did not end."""


@dataclass(frozen=True, slots=True)
class Trial:
    crew: str
    fault: str


@dataclass(slots=True)
class Tally:
    """What is known of one crew."""

    runs: int = 0
    missed: int = 0
    failed: int = 0
    kills: list[float] = field(default_factory=list)  # seconds until recovery
    stops: list[float] = field(default_factory=list)  # the same, with the time stopped
    cuts: list[float] = field(default_factory=list)  # the same, of connections


def crews() -> dict[str, dict[str, Any]]:
    """Every strategy on every transport where a worker can come back, and some of what they may be
    asked besides."""
    found: dict[str, dict[str, Any]] = {}
    for name, kind in STRATEGIES.items():
        for transport in kind.transports or ("auto",) if kind.many and kind.shared else ():
            asked: dict[str, Any] = {"strategy": name, "transport": transport, "workers": WORKERS}
            crew = f"{name}-{transport}" if kind.transports else name
            if kind.served:
                asked["servers"] = SERVERS
            if "sync_every" in kind.options:
                asked["sync_every"] = SYNC_EVERY
            if not can_rejoin(RunSpec(**asked), "worker"):
                continue
            found[crew] = asked
            if kind.served or in_a_group(RunSpec(**asked)):
                found[crew + WIDE] = asked
            if kind.served and transport == "tcp":
                found[crew + REPLICAS] = found[crew + REPLICAS + WIDE] = asked | {"replicas": 1}
            if kind.tables:
                found[crew + ROWS] = asked
            if in_a_group(RunSpec(**asked)):  # more survive, who may be a round apart
                found[crew + MORE] = asked | {"workers": 2 * WORKERS, "batch": BATCH // 2}
    rounds = {"strategy": "ps-sync", "transport": "shm", "workers": WORKERS}
    # Between a model that all apply and one whose gradients are read where backward left them.
    found[f"ps-sync-shm{MIDDLE}"] = {**rounds, "servers": SERVERS}
    wired = rounds | {"transport": "tcp", "servers": SERVERS}
    for transport, asked in (("shm", rounds), ("tcp", wired)):
        found[f"backup-{transport}"] = {**asked, "workers": WORKERS + 1, "backup": 1}
        found[f"ps-sync-{transport}{BALANCED}"] = {**asked, "balance": True}
    group = {"strategy": "allreduce", "transport": "auto", "workers": WORKERS}
    found[f"allreduce{BALANCED}"] = {**group, "balance": True}
    found["ps-async-tcp-tls"] = {**wired, "strategy": "ps-async", "tls": True}
    found["single"] = {"strategy": "single", "transport": "auto", "workers": 1}
    return found


def roles(asked: dict[str, Any]) -> list[str]:
    """Those that can come back."""
    found = [f"worker-{index}" for index in range(asked["workers"])]
    if can_rejoin(RunSpec(**asked), "server"):
        found += [f"server-{index}" for index in range(SERVERS)]
    if can_rejoin(RunSpec(**asked), "standby"):
        found += [f"standby-{index}" for index in range(SERVERS)]
    return found


def lines(asked: dict[str, Any]) -> list[str]:
    """Connections."""
    servers = range(SERVERS)
    found = [f"worker-{worker}-server-{server}" for worker in range(WORKERS) for server in servers]
    if asked.get("replicas"):
        found += [f"standby-{index}-server-{index}" for index in servers]
    return found


def any_trial(rng: Random, known: dict[str, dict[str, Any]]) -> Trial:
    """A kill as often as a stop, at a step as often as at a time; a stop short or long.

    Of servers over TCP every fourth is something done to a connection, for as short or as long.
    """
    crew = rng.choice(sorted(known))
    role = rng.choice(roles(known[crew]))
    lasts = rng.uniform(0.1, 0.7 * LEASE) if rng.random() < 0.5 else rng.uniform(2, 3) * LEASE
    if known[crew]["transport"] == "tcp" and "servers" in known[crew] and rng.random() < 0.25:
        line = rng.choice(lines(known[crew]))
        moment = f"{rng.uniform(0, SECONDS):.3f}s"
        return Trial(crew, f"{rng.choice(LINES)}:{line}@{moment}+{lasts:.3f}s")
    if rng.random() < 0.5:
        moment = f"step={rng.randint(1, ROUNDS)}"
    else:
        moment = f"{rng.uniform(0, SECONDS):.3f}s"
    if rng.random() < 0.5:
        return Trial(crew, f"kill:{role}@{moment}")
    return Trial(crew, f"stop:{role}@{moment}+{lasts:.3f}s")


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """TooLong if the block takes longer; the run in it is then ended as by any error."""

    def over(number: int, frame: FrameType | None) -> None:
        raise TooLong(f"it had not ended after {seconds:.0f} s")

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def ledger_of(run: paceline.Run) -> Tensor:
    """How often each sample counted."""
    found: dict[str, Tensor] = run.parameters()
    return found["seen"] if "seen" in found else found["seen.weight"].flatten()


def wrong_with(run: paceline.Run) -> str:
    """What the run should not have come to; nothing if it is as if no fault had been."""
    if run.status != "done":
        return f"its status is '{run.status}'"
    ledger = ledger_of(run)
    seen = ledger[:: len(ledger) // SAMPLES]
    if ledger.count_nonzero() > SAMPLES:
        return "parameters changed that belong to no sample"
    spec = run.summary["spec"]
    strategy, workers = spec["strategy"], spec["workers"]
    low, high = float(seen.min()), float(seen.max())
    if strategy == "hogwild":  # two at once may lose one of their updates, fault or no fault
        sound = seen.mean() > 0.9 * EPOCHS and high < EPOCHS + 1.5
    elif spec["backup"]:  # what comes late is dropped, fault or no fault
        sound = low >= 0 and high <= EPOCHS * workers
    elif strategy == "allreduce":  # of other shares the same sum, but for rounding
        sound = EPOCHS - 1e-3 < low <= high < EPOCHS + 1e-3
    elif strategy in ("ps-sync", "local-sgd"):
        # A round that closed without the worker lacks the samples of its steps since the last one,
        # and the others count for more.
        steps = 2 if strategy == "ps-sync" else SYNC_EVERY * (1 + (spec["transport"] == "tcp"))
        steps *= workers if spec["balance"] else 1  # at most all of a round was its share
        sound = (seen < EPOCHS - 0.5).sum() <= steps * BATCH and high <= EPOCHS + workers
    else:
        sound = low == high == EPOCHS
    if not sound:
        off = int((seen != EPOCHS).sum())
        return f"samples counted {low:g} to {high:g} times in {EPOCHS} epochs, {off} of them wrong"
    applied = {r["steps"] for r in run.roles if r["role"].startswith("server-")}
    rounds = EPOCHS * -(-SAMPLES // (BATCH * workers))
    if strategy == "ps-sync" and applied != {rounds}:
        return f"servers applied {sorted(applied)} rounds instead of {rounds}"
    return ""


def left_after(mark: str) -> str:
    over = time.monotonic() + SETTLES_WITHIN
    while (left := leftovers(mark)) and time.monotonic() < over:
        time.sleep(0.02)
    return "; ".join(left)


def attempt(trial: Trial, asked: dict[str, Any], out: Path, mark: str, tally: Tally) -> str:
    """Run the trial; what was wrong with it."""
    in_step = STRATEGIES[asked["strategy"]].samples == "slices"
    rate = asked.get("batch", BATCH) * (asked["workers"] if in_step else 1)
    fields = {"epochs": EPOCHS, "lr": float(rate), "evaluate": "never", "lease": LEASE, **asked}
    kinds = {WIDE: "Wide", MIDDLE: "Middle", ROWS: "Rows"}
    names = [name for end, name in kinds.items() if trial.crew.endswith(end)]
    task = f"{TASKS}:{names[0] if names else 'Counting'}"
    tally.runs += 1
    wrong = ""
    try:
        with limited(ENDS_WITHIN):
            run = paceline.fit(task, out=out, inject=[trial.fault], **fields)
            wrong = wrong_with(run)
    except (paceline.PacelineError, TooLong) as failed:
        wrong = f"{type(failed).__name__}: {failed}"
    else:
        faults = run.summary["faults"]
        tally.missed += not faults
        kinds = {"kill": tally.kills, "stop": tally.stops}
        after = kinds.get(trial.fault.partition(":")[0], tally.cuts)
        took = [fault["seconds"] for fault in faults if fault["seconds"] is not None]
        after += took
        # Whoever was stopped after its last step shows no other sign of having gone on.
        if any(f["seconds"] is None and f["what"].endswith("killed") for f in faults):
            wrong = wrong or "it never recovered"
        if after is tally.kills and max(took, default=0.0) > RECOVERS_WITHIN:
            wrong = wrong or f"it went on only after {max(took):.1f} s"
    wrong = wrong or left_after(mark)
    tally.failed += bool(wrong)
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(prog="tools.chaos", description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--minutes", type=float, help="so long instead")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(2**32))
    parser.add_argument("--only", type=int, help="one trial, by its number")
    parser.add_argument("--crew", nargs="+", choices=sorted(crews()), help="only these")
    chosen = parser.parse_args()
    known = {n: asked for n, asked in crews().items() if n in (chosen.crew or [n])}
    say(f"seed {chosen.seed}\n")
    mark = leave_mark("PACELINE_CHAOS")
    out = Path(tempfile.mkdtemp(prefix="paceline-chaos-"))
    tallies = {name: Tally() for name in known}
    until = time.monotonic() + 60 * chosen.minutes if chosen.minutes else float("inf")
    first = chosen.only or 0
    last = first + 1 if chosen.only is not None else sys.maxsize if chosen.minutes else chosen.runs
    for number_ in range(first, last):
        if time.monotonic() > until:
            break
        trial = any_trial(Random(f"{chosen.seed}/{number_}"), known)
        folder = out / str(number_)
        wrong = attempt(trial, known[trial.crew], folder, mark, tallies[trial.crew])
        if wrong:
            again = f"--seed {chosen.seed} --only {number_}"
            again += f" --crew {' '.join(chosen.crew)}" if chosen.crew else ""
            say(f"\n{trial.crew} {trial.fault}: {wrong}\n    {again} does it again; see {folder}\n")
        else:
            shutil.rmtree(folder, ignore_errors=True)
            say(f"\r{number_ + 1 - first} runs, {sum(t.failed for t in tallies.values())} failed  ")
    say("\n")
    show(tallies)
    if any(tally.failed for tally in tallies.values()):
        return 1
    shutil.rmtree(out, ignore_errors=True)
    return 0


def show(tallies: dict[str, Tally]) -> None:
    """Runs of each crew and of all, and how long until recovery."""
    done = {name: tally for name, tally in tallies.items() if tally.runs}
    done["all"] = added_up(list(done.values()))
    ours = list(done.values())
    columns = [
        Column(title="strategy", cells=list(done), words=True, style="cyan"),
        Column(title="runs", cells=[number(t.runs) for t in ours]),
        Column(title="late", cells=[number(t.missed) for t in ours]),
        Column(title="failed", cells=[number(t.failed) for t in ours]),
    ]
    of = {"kill": [t.kills for t in ours], "stop": [t.stops for t in ours]}
    for what, all_of in (of | {"cut": [t.cuts for t in ours]}).items():
        middle = [statistics.median(seconds) if seconds else None for seconds in all_of]
        worst = [max(seconds, default=None) for seconds in all_of]
        columns += [
            Column(title=what, unit="median s", cells=[number(s, 2) for s in middle]),
            Column(title=what, unit="worst s", cells=[number(s, 2) for s in worst]),
        ]
    console = Console(highlight=False, emoji=False)
    console.width = max(console.width, WIDTH)  # also where it goes to a file
    console.print(table(columns))


def added_up(tallies: list[Tally]) -> Tally:
    return Tally(
        runs=sum(t.runs for t in tallies),
        missed=sum(t.missed for t in tallies),
        failed=sum(t.failed for t in tallies),
        kills=[seconds for t in tallies for seconds in t.kills],
        stops=[seconds for t in tallies for seconds in t.stops],
        cuts=[seconds for t in tallies for seconds in t.cuts],
    )


def say(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
