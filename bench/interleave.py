"""The command that benches share: contenders in turn, progress, tables, results and page.

Each repeat takes every contender once, in an order that turns, so that the machine's moods fall on
all alike.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from bench.catalog import MODELS, Bench, Contender, Model
from bench.machine import facts
from bench.page import body, write_page
from bench.tables import Rates
from paceline.store.atomic import write_atomic

REPEATS = 5  # fewer tell no spread, and are not written down

# Samples a second of a contender on a model.
Measure = Callable[[Model, Contender], float]
Named = TypeVar("Named")


def main(
    bench: Bench, about: str, measure: Measure, versions: Callable[[], dict[str, str]] = dict
) -> None:
    """Read the flags, measure, print; and write down what is whole.

    `versions` tells those of packages that Paceline does not use.
    """
    contenders = {contender.name: contender for contender in bench.contenders}
    parser = argparse.ArgumentParser(description=about.split("\n", maxsplit=1)[0])
    known = {task: MODELS[task] for task in bench.models}
    parser.add_argument("--models", default=",".join(known), help="by comma")
    parser.add_argument("--contenders", default=",".join(contenders), help="by comma")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--no-save", action="store_true", help="print only")
    args = parser.parse_args()
    models = _chosen(parser, known, args.models)
    taking = _chosen(parser, contenders, args.contenders)
    if args.repeats < 1:
        parser.error("--repeats must be at least 1.")

    rates = interleaved(models, taking, args.repeats, measure)
    print("\n".join(body(bench, rates)))
    whole = len(models) == len(known) and len(taking) == len(contenders)
    if args.no_save or not whole or args.repeats < REPEATS:
        print("Not saved: asked not to, or not the whole bench.", file=sys.stderr)
        return
    record = {"machine": facts(versions()), "repeats": args.repeats, "samples_per_second": rates}
    bench.results.parent.mkdir(exist_ok=True)
    write_atomic(bench.results, json.dumps(record, indent=1) + "\n")
    write_page()


def interleaved(
    models: Sequence[Model], contenders: Sequence[Contender], repeats: int, measure: Measure
) -> dict[str, Rates]:
    rates: dict[str, Rates] = {m.task: {c.name: [] for c in contenders} for m in models}
    began, done = time.monotonic(), 0
    for repeat in range(repeats):
        for model in models:
            for contender in turned(contenders, repeat):
                rate = measure(model, contender)
                rates[model.task][contender.name].append(rate)
                done += 1
                left = repeats * len(models) * len(contenders) - done
                minutes = (time.monotonic() - began) / done * left / 60
                told = f"{repeat + 1}/{repeats} {model.task:8} {contender.name:14}"
                told += f" {rate:12,.0f} samples/s, about {minutes:.0f} min left"
                print(told, file=sys.stderr, flush=True)
    return rates


def turned(contenders: Sequence[Contender], repeat: int) -> Iterable[Contender]:
    first = repeat % len(contenders)
    return [*contenders[first:], *contenders[:first]]


def _chosen(parser: argparse.ArgumentParser, known: dict[str, Named], names: str) -> list[Named]:
    """The named ones in the order they are known in, so that tables look alike."""
    asked = {name.strip() for name in names.split(",")}
    if odd := sorted(asked - known.keys()):
        parser.error(f"unknown: {', '.join(odd)}; known: {', '.join(known)}.")
    return [thing for name, thing in known.items() if name in asked]
