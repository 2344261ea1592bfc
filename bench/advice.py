"""Situations made on purpose: is the verdict right, and does its advice bring what it promises?

    python -m bench.advice                about four minutes

Each situation is run once and diagnosed; then its first advice that a program can follow is tried
as `paceline diagnose --try` does it: turns of a run as it was and one as advised. A gain is the
median of the turns, and lies inside if it is within the range that was predicted before.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import paceline
from bench.advised import body, row
from bench.catalog import ADVICE
from bench.machine import facts
from bench.page import write_page
from paceline.api import try_advice
from paceline.diagnose.trial import as_object
from paceline.errors import RequestError
from paceline.store.atomic import write_atomic
from tools.situations import Situation, situations

TURNS = 3


def measure(situation: Situation, out: Path, turns: int, seconds: float) -> dict[str, Any]:
    """A situation's verdict, and its advice tried where a program can follow one."""
    run = paceline.fit(out=out, **situation.spec)
    verdict = run.verdict
    told = {
        "name": situation.name,
        "wanted": [situation.cause, *situation.roles],
        "found": [verdict["bottleneck"], *verdict["roles"]],
        "sentence": verdict["sentence"],
        "tried": None,
    }
    try:
        told["tried"] = as_object(try_advice(run, turns=turns, seconds=seconds))
    except RequestError as nothing:  # for a person to do
        told["by_hand"] = str(nothing)
    return told


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each run")
    parser.add_argument("--only", default="", help="situations with this in their name")
    args = parser.parse_args(arguments)
    if args.turns < 1:
        parser.error("--turns must be at least 1.")
    known = situations(len(os.sched_getaffinity(0)))
    some = [situation for situation in known if args.only in situation.name]
    found = []
    with tempfile.TemporaryDirectory() as scratch:
        for situation in some:
            told = measure(situation, Path(scratch), args.turns, args.seconds)
            print(row(told), file=sys.stderr, flush=True)
            found.append(told)
    record = {"machine": facts(), "repeats": args.turns, "situations": found}
    print("\n".join(body(record)))
    if len(some) < len(known) or args.turns < TURNS:
        print("Not saved: not the whole bench.", file=sys.stderr)
        return
    ADVICE.results.parent.mkdir(exist_ok=True)
    write_atomic(ADVICE.results, json.dumps(record, indent=1) + "\n")
    write_page()


if __name__ == "__main__":
    main()
