"""Runs that are slow for a reason that is known: they are made so.

What `paceline diagnose` must find of each, and for some of them what its advice brings: the tests
and `python -m bench.advice` rest on these.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TASKS = Path(__file__).with_name("situation_tasks.py")


@dataclass(frozen=True, kw_only=True)
class Situation:
    """`cause` and `roles` are what must be found; `second` is the cause that comes after it."""

    name: str
    task: str
    cause: str
    roles: tuple[str, ...]
    second: str = ""
    fields: dict[str, Any] = field(default_factory=dict)

    @property
    def spec(self) -> dict[str, Any]:
        """Fields of its RunSpec."""
        named = self.task if self.task.islower() else f"{TASKS}:{self.task}"
        return {"task": named, "evaluate": "never", "threads": 1, "batch": 64, **self.fields}


ONE = ("worker-0",)
BOTH = ("worker-0", "worker-1")
PAIR: dict[str, Any] = {"strategy": "ps-sync", "workers": 2}
WIRED: dict[str, Any] = {**PAIR, "transport": "tcp"}
MANY = 8  # cores: beyond, there are not several threads or workers for each

_ANYWHERE = (
    Situation(
        name="pure compute",
        task="Work",
        cause="compute",
        roles=BOTH,
        fields={**PAIR, "batch": 200, "steps": 150},
    ),
    Situation(
        name="a core that is idle",
        task="Work",
        cause="compute",
        roles=ONE,
        fields={"batch": 200, "steps": 200},
    ),
    Situation(
        name="throttled loader",
        task="Throttled",
        cause="input",
        roles=ONE,
        fields={"steps": 120},
    ),
    Situation(
        name="server link at 100 Mbit/s",
        task="Narrow",
        cause="server-network",
        roles=("server-0",),
        fields={**WIRED, "steps": 25, "inject": ["limit:server-0=100mbit"]},
    ),
    Situation(
        name="one worker's link at 50 Mbit/s",
        task="Narrow",
        cause="worker-network",
        roles=("worker-1",),
        fields={**WIRED, "steps": 25, "inject": ["limit:worker-1=50mbit"]},
    ),
    Situation(
        name="server applies slowly",
        task="Wide",
        cause="server-cpu",
        roles=("server-0",),
        fields={**WIRED, "steps": 50, "inject": ["slow:server-0x40"]},
    ),
    Situation(
        name="one worker 2x slower",
        task="Work",
        cause="straggler",
        roles=("worker-1",),
        fields={**PAIR, "batch": 200, "steps": 80, "inject": ["slow:worker-1x2"]},
    ),
    Situation(
        name="batch of 1",
        task="softmax",
        cause="small-batch",
        roles=BOTH,
        fields={**WIRED, "data": "synthetic:20000x784:10", "batch": 1, "steps": 1200},
    ),
    Situation(
        name="evaluation every step",
        task="Scored",
        cause="evaluation",
        roles=BOTH,
        fields={**PAIR, "batch": 200, "evaluate": "epoch", "epochs": 40},
    ),
    Situation(
        name="heavy codec",
        task="Wide",
        cause="codec",
        roles=ONE,
        fields={**WIRED, "workers": 1, "batch": 8, "codec": "onebit", "steps": 150},
    ),
    Situation(
        name="one worker 4x slower, and scoring",
        task="ScoredBriefly",
        cause="straggler",
        roles=("worker-1",),
        second="evaluation",
        fields={
            **PAIR,
            **{"batch": 200, "evaluate": "epoch", "epochs": 8},
            "inject": ["slow:worker-1x4"],
        },
    ),
    Situation(
        name="scoring, and one worker 2.5x slower",
        task="Scored",
        cause="evaluation",
        roles=BOTH,
        second="straggler",
        fields={
            **PAIR,
            **{"batch": 200, "evaluate": "epoch", "epochs": 30},
            "inject": ["slow:worker-1x2.5"],
        },
    ),
)


def situations(cores: int) -> tuple[Situation, ...]:
    """On a machine with so many cores."""
    if cores > MANY:
        return _ANYWHERE
    return (
        *_ANYWHERE,
        Situation(
            name="threads = 4x cores",
            task="Work",
            cause="threads",
            roles=ONE,
            fields={"batch": 200, "steps": 60, "threads": 4 * cores},
        ),
        Situation(
            name="three times as many workers as cores",
            task="Work",
            cause="cores",
            roles=tuple(f"worker-{n}" for n in range(3 * cores)),
            fields={"strategy": "ps-sync", "workers": 3 * cores, "batch": 200, "steps": 240},
        ),
    )
