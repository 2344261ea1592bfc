"""What `bench.sparse` has measured, as Markdown."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any, NamedTuple

from bench.tables import spread

SKLEARN, VOWPAL, NAMES = "scikit-learn", "Vowpal Wabbit", "Vowpal Wabbit, names"
ONE = "hogwild, 1 worker"  # goes sample by sample, as scikit-learn does; `single` in batches
ID_BYTES, VALUE_BYTES = 4, 4

BARS = (
    (ONE, SKLEARN, 1.0),
    ("hogwild, 2 workers", SKLEARN, 2.5),
    ("hogwild from text", NAMES, 5.0),
    ("hogwild from text", VOWPAL, 5.0),
    ("hogwild, 2 workers", NAMES, 20.0),
    ("hogwild, 2 workers", VOWPAL, 20.0),
)
WIRE_MOST, WIRE_FEWER, WIRE_FASTER = 1.3, 100.0, 50.0
LOSS_WITHIN = 0.005
ACCURACY, SECONDS = 0.895, 20.0


class Measured(NamedTuple):
    """One contender, once."""

    rows: int
    seconds: float
    loss: float
    memory_mb: float

    @property
    def rate(self) -> float:
        return self.rows / self.seconds


def body(record: dict[str, Any]) -> list[str]:
    """All parts that were measured."""
    lines: list[str] = []
    bars: list[str] = []
    for part, told in (
        ("speed", _speed),
        ("quality", _quality),
        ("wire", _wire),
        ("reviews", _reviews),
    ):
        if record.get(part):
            more, wanted = told(record)
            lines += more
            bars += wanted
    return [*lines, *_table(("wanted", "measured", ""), bars)] if bars else lines


def _table(heads: Sequence[str], rows: Sequence[str]) -> list[str]:
    marks = ["---", *["---:"] * (len(heads) - 1)]
    return [f"| {' | '.join(heads)} |", f"|{'|'.join(marks)}|", *rows, ""]


def _met(good: bool) -> str:
    return "met" if good else "not met"


def _speed(record: dict[str, Any]) -> tuple[list[str], list[str]]:
    found = {n: [Measured(**one) for one in all_] for n, all_ in record["speed"].items()}
    rates = {name: [one.rate for one in all_] for name, all_ in found.items()}
    against = [name for name in (SKLEARN, VOWPAL, NAMES) if name in rates]

    def ratios(name: str, other: str) -> list[float]:
        return [a / b for a, b in zip(rates[name], rates[other], strict=True)]

    rows = []
    for name, all_ in found.items():
        parts = [spread(ratios(name, other), ".2f") for other in against]
        loss = spread([one.loss for one in all_], ".4f")
        memory = f"{statistics.median([one.memory_mb for one in all_]):,.0f}"
        cells = [name, f"{all_[0].rows:,}", spread(rates[name], ",.0f"), *parts, loss, memory]
        rows.append(f"| {' | '.join(cells)} |")
    heads = ("", "rows", "rows/s", *(f"of {name}" for name in against), "log loss", "MB")
    lines = _table(heads, rows)
    lines += [
        f"The least log loss that the truth allows on the test rows is {record['floor']:.4f}. "
        "Spark MLlib has fewer rows to learn from. Vowpal Wabbit reads text, in which features are "
        "numbers that were hashed before, or names that it has to hash, as ours has to from text. "
        "Where ours is not told to be from text it trains from shards.",
        "",
    ]
    bars = [
        f"| {name}: {least}x {other} | {spread(ratios(name, other), '.2f')} "
        f"| {_met(statistics.median(ratios(name, other)) >= least)} |"
        for name, other, least in BARS
        if name in rates and other in rates
    ]
    if ONE in found and SKLEARN in found:
        mine, theirs = (statistics.median([x.loss for x in found[n]]) for n in (ONE, SKLEARN))
        told = f"{mine:.4f} beside {theirs:.4f} | {_met(mine <= theirs)}"
        bars.append(f"| {ONE}: log loss at most that of {SKLEARN} | {told} |")
    return lines, bars


def _quality(record: dict[str, Any]) -> tuple[list[str], list[str]]:
    losses: dict[str, float] = record["quality"]
    alone = losses["single"]
    rows = [f"| {n} | {x:.5f} | {100 * (x / alone - 1):+.2f} % |" for n, x in losses.items()]
    worst = max(abs(loss / alone - 1) for loss in losses.values())
    bar = f"| log loss of others within {100 * LOSS_WITHIN:g} % of `single` | {100 * worst:.2f} % "
    return _table(("", "log loss", "beside `single`"), rows), [
        f"{bar}| {_met(worst <= LOSS_WITHIN)} |"
    ]


def _wire(record: dict[str, Any]) -> tuple[list[str], list[str]]:
    found = record["wire"]
    sparse, dense = found["sparse"], found["dense"]
    ideal = found["rows"] * (ID_BYTES + VALUE_BYTES)
    rows = [
        f"| {name} | {one['sent']:,.0f} | {one['received']:,.0f} | {1000 * one['seconds']:,.1f} |"
        for name, one in (("rows in use", sparse), ("whole model", dense))
    ]
    heads = (f"ps-async tcp, batch {found['batch']:,}", "bytes sent", "bytes received", "ms a step")
    lines = _table(heads, rows)
    lines += [
        f"A batch uses {found['rows']:,.0f} rows of {found['features']:,}: "
        f"{ideal:,.0f} bytes, at {ID_BYTES} for a number and {VALUE_BYTES} for a value.",
        "",
    ]
    most = max(sparse["sent"], sparse["received"]) / ideal
    fewer = (dense["sent"] + dense["received"]) / (sparse["sent"] + sparse["received"])
    faster = dense["seconds"] / sparse["seconds"]
    return lines, [
        f"| bytes each way: at most {WIRE_MOST}x the rows in use | {most:.2f} "
        f"| {_met(most <= WIRE_MOST)} |",
        f"| bytes: {WIRE_FEWER:g}x fewer than dense | {fewer:,.0f} | {_met(fewer >= WIRE_FEWER)} |",
        f"| seconds a step: {WIRE_FASTER:g}x fewer than dense | {faster:,.0f} "
        f"| {_met(faster >= WIRE_FASTER)} |",
    ]


def _reviews(record: dict[str, Any]) -> tuple[list[str], list[str]]:
    found = record["reviews"]
    told = (
        f"Film reviews, {found['rows']['train']:,} to train with and {found['rows']['test']:,} to "
        f"test with, {found['features']:,} features: {100 * found['accuracy']:.2f} % right, AUC "
        f"{found['auc']:.4f}; {found['train_seconds']:.1f} s of training, {found['seconds']:.1f} s "
        f"with start and scoring; {found['conversion_seconds']:.1f} s from text to shards."
    )
    good, fast = found["accuracy"] >= ACCURACY, found["seconds"] < SECONDS
    return [told, ""], [
        f"| reviews: {100 * ACCURACY:g} % | {100 * found['accuracy']:.2f} % | {_met(good)} |",
        f"| reviews: under {SECONDS:g} s | {found['seconds']:.1f} s | {_met(fast)} |",
    ]
