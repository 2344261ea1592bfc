"""Random and damaged frames against a server's desk, by the million: `make fuzz`.

Everything is in one process, over socket pairs. A bench is a new server and thirty peers in turn;
it depends on the seed and its number alone, so one that failed is run again by itself:

    python -m tools.fuzz --seed 7 --only 1234
"""

from __future__ import annotations

import argparse
import json
import secrets
import sys
import time
from dataclasses import asdict
from pathlib import Path
from random import Random

import psutil
import torch

from paceline.transport import auth
from tools.fuzz_wire import Setup, Stand, bench

FAILED = Path("fuzz-failure.json")
MOST_GROWTH = 64 << 20  # bytes of memory, over any number of frames
ROOMS = (40, 200, 1 << 20)  # bytes of answers that go at once
SETTLED = 50  # benches until everything has been allocated that ever is


def main() -> int:
    parser = argparse.ArgumentParser(prog="tools.fuzz", description=__doc__.split("\n")[0])
    parser.add_argument("--frames", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(2**32))
    parser.add_argument("--only", type=int, help="one bench, by its number")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    say(f"seed {chosen.seed}\n")
    if chosen.only is not None:
        run(chosen.seed, chosen.only)
        say(f"bench {chosen.only} went well\n")
        return 0
    began = told = time.monotonic()
    process = psutil.Process()
    frames, number, settled = 0, 0, 0
    while frames < chosen.frames:
        frames += run(chosen.seed, number)
        number += 1
        if number == SETTLED:
            settled = process.memory_info().rss
        now = time.monotonic()
        if now - told > 2 or frames >= chosen.frames:
            told = now
            rate = frames / (now - began)
            left = max(0, chosen.frames - frames) / rate
            grown = max(0, process.memory_info().rss - settled) if settled else 0
            say(f"\r{frames:,} frames, {rate:,.0f}/s, {left:.0f} s left, {grown >> 20} MiB grown  ")
            if grown > MOST_GROWTH:
                say(f"\nmemory grew by {grown >> 20} MiB\n")
                return 1
    say(f"\n{frames:,} frames on {number:,} servers in {time.monotonic() - began:.0f} s: sound\n")
    return 0


def run(seed: int, number: int) -> int:
    """The frames of one bench. What it was told is kept where it went wrong."""
    rng = Random(f"{seed}/{number}")
    nonces = Random(f"{seed}/{number}/nonces")
    auth.new_nonce = lambda: nonces.randbytes(auth.NONCE_BYTES)  # so that it can be said again
    setup = Setup.any(rng)
    stand = Stand(setup, room=rng.choice(ROOMS))
    try:
        return bench(rng, stand)
    except Exception as wrong:
        said = [words.hex() for words in stand.said]
        kept = {"seed": seed, "bench": number, "setup": asdict(setup), "said": said}
        FAILED.write_text(json.dumps(kept, indent=1))
        say(
            f"\n{type(wrong).__name__}: {wrong}\nin bench {number} of seed {seed}; what was said "
            f"is in {FAILED}, and --seed {seed} --only {number} says it again\n"
        )
        raise SystemExit(1) from wrong


def say(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
