"""Resident memory of a worker with 33 million dense parameters (132 MB), two workers.

    python -m bench.memory

Told twice: all of it, and what it is more than that of the same worker with a tiny model, which is
what Python and torch take by themselves.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from torch import nn

import paceline
from bench.catalog import MEMORY
from bench.findings import Findings, tell

MOST = 3.2
WAYS = (("ps-sync", "shm"), ("ps-async", "shm"), ("ps-sync", "tcp"), ("ps-async", "tcp"))


class Wide(paceline.Task):
    """One dense layer of 33 million parameters."""

    data_name = "synthetic:2000x3300"
    batch = 16
    outputs = 10_000

    def model(self) -> nn.Module:
        return nn.Sequential(nn.Flatten(), nn.Linear(3300, self.outputs, bias=False))


class Tiny(Wide):
    outputs = 10


def resident(task: str, strategy: str, transport: str, out: Path) -> float:
    """Megabytes, of the worker that takes more."""
    run = paceline.fit(
        f"{Path(__file__).resolve()}:{task}",
        strategy=strategy,
        transport=transport,
        workers=2,
        steps=4000 if task == "Tiny" else 25,
        lr=0.01,
        evaluate="never",
        out=out,
    )
    return max(role["memory_mb"] for role in run.roles if role["role"].startswith("worker-"))


def main() -> None:
    model = 3300 * Wide.outputs * 4 / 1e6
    found = Findings(("", "MB", "with a tiny model", "times the model", "times more"))
    with tempfile.TemporaryDirectory() as out:
        for strategy, transport in WAYS:
            tiny, wide = (resident(t, strategy, transport, Path(out)) for t in ("Tiny", "Wide"))
            name, whole, more = f"{strategy} {transport}", wide / model, (wide - tiny) / model
            told = (f"{wide:.0f}", f"{tiny:.0f}", f"{whole:.2f}", f"{more:.2f}")
            found.rows.append((name, *told))
            asked = f"{name}: at most {MOST} times the model more than with a tiny one"
            found.want(asked, f"{more:.2f}", more <= MOST)
            print(f"{name}: {', '.join(told)}", file=sys.stderr, flush=True)
    tell(MEMORY, found, 1, whole=True)


if __name__ == "__main__":
    main()
