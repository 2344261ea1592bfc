"""Logistic regression with 33,762,578 features: how fast, how good, and how much travels.

    make bench-sparse                              all of it, about a quarter of an hour
    python -m bench.sparse --only speed --rows 1000000 --repeats 2

Click-like rows with 39 fields are made, of which the best possible log loss is known. Everything
takes one pass over the same rows.

speed     in turns with scikit-learn, Vowpal Wabbit and Spark MLlib, each in an environment of its
          own (`bench/clicks` says what was chosen to suit it). Ours trains from shards, and is told
          from the begin of the first step to the end of the last; from text, the conversion to
          shards is in it too. Of nobody the time counts in which its program is loaded.
quality   log loss of strategies with two and four workers, beside that of one.
wire      over TCP, steps of 1,000 rows: bytes each way beside what the rows in use come to, and
          beside the whole model; and seconds.
reviews   film reviews as words and pairs of words: accuracy, and seconds from shards; needs
          --reviews FILE, JSON lines with `reviewText`, `overall` (stars) and `split`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import paceline
from bench.catalog import SPARSE
from bench.clicks.rows import log_loss, read, write_texts
from bench.clicks.table import Measured, body
from bench.contenders import environment
from bench.interleave import REPEATS, turned
from bench.machine import facts
from bench.page import write_page
from bench.processes import outputs
from bench.records import records, speed
from paceline.data import clicks
from paceline.data.open import open_data
from paceline.data.sampler import order
from paceline.data.sparse.generate import weights
from paceline.measure.rates import durations
from paceline.store.atomic import write_atomic

ROWS = 4_000_000
FEATURES = 33_762_578
BATCH = 1000
SECONDS = 900.0
WIRE_STEPS, DENSE_STEPS = 60, 8
PARTS = ("speed", "quality", "wire", "reviews")
TASK: dict[str, Any] = {"task": "sparse-logreg", "epochs": 1, "checkpoint_every": 0}
OURS: dict[str, dict[str, Any]] = {
    "single": {"strategy": "single"},
    "hogwild, 1 worker": {"strategy": "hogwild", "workers": 1},
    "hogwild, 2 workers": {"strategy": "hogwild", "workers": 2},
    "ps-async shm, 2 workers": {"strategy": "ps-async", "workers": 2, "transport": "shm"},
    "ps-sync shm, 2 workers": {"strategy": "ps-sync", "workers": 2, "transport": "shm"},
}
FROM_TEXT = "hogwild from text"
PEERS = {
    "scikit-learn": ["bench.clicks.sklearn_sgd"],
    "Vowpal Wabbit": ["bench.clicks.vowpal"],
    "Vowpal Wabbit, names": ["bench.clicks.vowpal", "--names"],
    "Spark MLlib": ["bench.clicks.spark_lr"],
}


class Ground:
    """The rows, as shards and as text."""

    def __init__(self, folder: Path, rows: int) -> None:
        self.folder = folder
        self.shards = folder / "clicks" / f"{rows}x{FEATURES}-0"
        self.texts = folder / "texts"
        say(f"making {rows:,} rows")
        clicks.check(f"{rows}x{FEATURES}", str(self.folder), 0)
        write_texts(self.shards, self.texts)

    def floor(self) -> float:
        """The log loss of who knows every weight."""
        from paceline.data.sparse.generate import BIAS

        test = read(self.shards, "test")
        known = np.unique(test.ids)
        at = weights(known)
        scores = at[np.searchsorted(known, test.ids)].sum(1) + BIAS
        return log_loss(scores, test.labels)


def train(out: Path, shards: Path, **how: Any) -> paceline.Run:
    run = paceline.fit(
        data="shards", data_dir=str(shards), out=out, **(TASK | {"evaluate": "end"} | how)
    )
    if run.status != "done":
        raise SystemExit(f"{how} was {run.status}.")
    return run


def measured(run: paceline.Run, before: float = 0.0) -> Measured:
    """`before` are seconds spent before training."""
    rows = sum(int(one["samples"].sum()) for one in records(run))
    seconds = rows / speed(records(run)) + before
    memory = sum(role["memory_mb"] or 0.0 for role in run.roles if role["inside"] is None)
    return Measured(rows, seconds, float(run.quality["loss"]), memory)


def ours(ground: Ground, out: Path, name: str) -> Measured:
    if name == FROM_TEXT:
        return from_text(ground, out)
    return measured(train(out, ground.shards, **OURS[name]))


def from_text(ground: Ground, out: Path) -> Measured:
    """Rows to score with are converted beside the clock, as peers read theirs."""
    seconds, to = converted(ground, out / "timed"), out / "converted"
    converted(ground, to, "--test", str(ground.texts / "test.criteo"))
    return measured(train(out, to, **OURS["hogwild, 2 workers"]), seconds)


def converted(ground: Ground, to: Path, *more: str) -> float:
    """Seconds, of a program that is loaded."""
    files = [str(ground.texts / "train.criteo"), *more]
    asked = ["--format", "criteo", "--features", str(FEATURES), "--to", str(to), "--json"]
    command = [sys.executable, "-m", "paceline.cli", "convert", *files, *asked]
    return float(json.loads(outputs([command], SECONDS)[0])["seconds"])


def peer(ground: Ground, name: str) -> Measured:
    command = [str(environment("sparse")), "-m", *PEERS[name]]
    command += ["--shards", str(ground.shards), "--texts", str(ground.texts)]
    return Measured(**json.loads(outputs([command], SECONDS)[0]))


def race(ground: Ground, names: Sequence[str], repeats: int) -> dict[str, list[Measured]]:
    """Every contender once a repeat, in an order that turns."""
    found: dict[str, list[Measured]] = {name: [] for name in names}
    for repeat in range(repeats):
        for name in turned(names, repeat):
            with tempfile.TemporaryDirectory(dir=ground.folder) as out:
                one = peer(ground, name) if name in PEERS else ours(ground, Path(out), name)
            found[name].append(one)
            say(f"{repeat + 1}/{repeats} {name:24} {one.rate:12,.0f} rows/s, loss {one.loss:.5f}")
    return found


def qualities(ground: Ground) -> dict[str, float]:
    """Log loss after the same rows."""
    ways: dict[str, dict[str, Any]] = {"single": OURS["single"]}
    for workers in (2, 4):
        for strategy, transport in (("hogwild", "shm"), ("ps-async", "shm"), ("ps-async", "tcp")):
            way = {"strategy": strategy, "workers": workers, "transport": transport}
            ways[f"{strategy} {transport}, {workers} workers"] = way
    found = {}
    for name, way in ways.items():
        with tempfile.TemporaryDirectory(dir=ground.folder) as out:
            found[name] = float(train(Path(out), ground.shards, **way).quality["loss"])
        say(f"{name:24} log loss {found[name]:.5f}")
    return found


def wire(ground: Ground) -> dict[str, Any]:
    """One worker, one server."""
    way = {"strategy": "ps-async", "transport": "tcp", "workers": 1, "batch": BATCH}
    found: dict[str, Any] = {"features": FEATURES, "batch": BATCH}
    for name, dense, steps in (("sparse", False, WIRE_STEPS), ("dense", True, DENSE_STEPS)):
        more = {"dense": dense, "steps": steps, "epochs": None, "evaluate": "never"}
        with tempfile.TemporaryDirectory(dir=ground.folder) as out:
            run = train(Path(out), ground.shards, **way, **more)
            (steps_,) = records(run)
            found[name] = {
                "seconds": statistics.median(durations(steps_[1:]).tolist()),
                "sent": traffic(run, "sent_mb", steps),
                "received": traffic(run, "received_mb", steps),
            }
    data = open_data("shards", str(ground.shards), 0).train
    dealt = order(data, 0)
    batches = [dealt.rows(0, s * BATCH, (s + 1) * BATCH) for s in range(WIRE_STEPS)]
    found["rows"] = statistics.mean(len(np.unique(data.batch(b)[0].ids)) for b in batches)
    say(f"wire: {json.dumps(found)}")
    return found


def traffic(run: paceline.Run, what: str, steps: int) -> float:
    """Bytes a step of the worker."""
    (worker,) = [role for role in run.roles if role["role"] == "worker-0"]
    return float(worker[what]) * 1e6 / steps


def reviews(folder: Path, file: Path) -> dict[str, Any]:
    to = folder / "reviews"
    asked = ["--format", "json", "--text", "reviewText", "--label", "overall", "--above", "5.5"]
    asked += ["--part", "split", "--features", str(1 << 24), "--to", str(to), "--json"]
    command = [sys.executable, "-m", "paceline.cli", "convert", str(file), *asked]
    told = json.loads(outputs([command], SECONDS)[0])
    data = open_data("shards", str(to), 0)
    parts = [part.batch(np.arange(len(part)))[0].ids for part in (data.train, data.test)]
    ids = np.unique(np.concatenate(parts))
    began = time.monotonic()
    run = train(folder / "runs", to, strategy="hogwild", workers=2, epochs=10, batch=50)
    seconds = time.monotonic() - began
    found = {
        "rows": told["rows"],
        "features": len(ids),
        "accuracy": run.quality["accuracy"],
        "auc": run.quality["auc"],
        "train_seconds": run.summary["seconds"]["train"],
        "seconds": seconds,
        "conversion_seconds": told["seconds"],
    }
    say(f"reviews: {json.dumps(found)}")
    return found


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    names = [*PEERS, *OURS, FROM_TEXT]
    parser.add_argument("--only", choices=PARTS, nargs="+", default=list(PARTS))
    parser.add_argument("--contenders", default=";".join(names), help="by semicolon")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--reviews", type=Path)
    parser.add_argument("--folder", type=Path, help="for rows and runs (default: a temporary one)")
    args = parser.parse_args()
    chosen = [name.strip() for name in args.contenders.split(";")]
    if odd := sorted(set(chosen) - set(names)):
        parser.error(f"unknown: {', '.join(odd)}; known: {', '.join(names)}.")
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        ground = Ground(Path(folder), args.rows)
        parts: dict[str, Callable[[], Any]] = {
            "speed": lambda: race(ground, chosen, args.repeats),
            "quality": lambda: qualities(ground),
            "wire": lambda: wire(ground),
            "reviews": lambda: reviews(ground.folder, args.reviews) if args.reviews else None,
        }
        record: dict[str, Any] = {part: parts[part]() for part in PARTS if part in args.only}
        record["floor"] = ground.floor()
    if "speed" in record:
        record["speed"] = {
            n: [one._asdict() for one in all_] for n, all_ in record["speed"].items()
        }
    print("\n".join(body(record)))
    whole = len(args.only) == len(PARTS) and chosen == names and args.rows == ROWS
    if not whole or args.repeats < REPEATS or not args.reviews:
        say("Not saved: not the whole bench.")
        return
    record |= {"machine": facts(), "repeats": args.repeats}
    write_atomic(SPARSE.results, json.dumps(record, indent=1) + "\n")
    write_page()


if __name__ == "__main__":
    main()
