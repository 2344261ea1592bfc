"""How each contender is measured: samples a second, all by the same statistics."""

from __future__ import annotations

import json
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

import paceline
from bench.catalog import DDP, LOCKSTEP, PACKED, RAY, TENSORFLOW, WORKERS, Contender, Model
from bench.processes import ROOT, Failed, free_ports, outputs
from paceline import env
from paceline.measure.rates import throughput
from paceline.store.steps import STEP

SECONDS = 300.0
ENVIRONMENTS = ROOT / ".venv-peers"


def measure(model: Model, contender: Contender) -> float:
    """Samples a second of all workers together."""
    if contender.name in PEERS:
        return _peer(model, contender)
    with tempfile.TemporaryDirectory() as out:
        run = paceline.fit(
            model.task,
            strategy=contender.strategy,
            transport=contender.transport,
            workers=contender.workers,
            batch=model.batch,
            steps=contender.steps[model.task],
            optimizer="sgd",
            lr=0.01,
            evaluate="never",
            checkpoint_every=0,
            out=Path(out),
        )
        if run.status != "done":
            raise SystemExit(f"{contender.name} on {model.task} was {run.status}: no rate.")
        return float(run.throughput["samples_per_second"])


def rate(ends: Sequence[Sequence[float]], batch: int) -> float:
    """Samples a second from the times at which steps ended, a series for each worker."""
    steps = []
    for times in ends:
        rows = np.zeros(len(times), dtype=STEP)
        rows["time"], rows["samples"] = times, batch
        rows["step"] = np.arange(1, len(times) + 1)
        rows["compute"][1:] = np.diff(times)
        steps.append(rows)
    found = throughput(steps).samples_per_second
    if found is None:
        raise Failed("too few steps to tell a rate")
    return found


def environment(name: str) -> Path:
    """The Python of a peer's own environment."""
    python = ENVIRONMENTS / name / "bin" / "python"
    if not (ENVIRONMENTS / name / "ready").is_file():
        raise SystemExit(f"There is no environment for {name}; `make bench-peers` creates it.")
    return python


def _peer(model: Model, contender: Contender) -> float:
    # One failure in an hour of runs must not cost the hour; two of the same are a fault.
    for last in (False, True):
        try:
            ends = PEERS[contender.name](model, contender.steps[model.task])
            return rate(ends, model.batch)
        except Failed as wrong:
            print(f"{contender.name} failed on {model.task}: {wrong}", file=sys.stderr)
            if last:
                raise SystemExit(f"{contender.name} failed twice on {model.task}.") from None
    raise AssertionError


def _asked(model: Model, steps: int) -> list[str]:
    asked = ["--task", model.task, "--batch", str(model.batch), "--steps", str(steps)]
    return [*asked, "--workers", str(WORKERS)]


def _raw_ddp(model: Model, steps: int) -> list[list[float]]:
    command = [sys.executable, "-m", "bench.raw_ddp", *_asked(model, steps)]
    command += ["--port", str(free_ports(1)[0])]
    printed = outputs([[*command, "--rank", str(rank)] for rank in range(WORKERS)], SECONDS)
    return [json.loads(ends) for ends in printed]


def _in_step(model: Model, steps: int) -> list[list[float]]:
    with tempfile.NamedTemporaryFile() as board:
        command = [sys.executable, "-m", "bench.lockstep", *_asked(model, steps)]
        command += ["--board", board.name]
        commands = [[*command, "--rank", str(rank)] for rank in range(WORKERS)]
        return [json.loads(ends) for ends in outputs(commands, SECONDS, settings=env.for_roles())]


def _elsewhere(
    name: str, module: str, *lent: str, packed: bool = True
) -> Callable[[Model, int], list[list[float]]]:
    """A module that starts its own roles, in an environment of its own."""

    def measured(model: Model, steps: int) -> list[list[float]]:
        command = [str(environment(name)), "-m", module, *_asked(model, steps)]
        command += [] if packed else ["--packed", "1"]
        ends: list[list[float]] = json.loads(outputs([command], SECONDS, lent)[0])
        return ends

    return measured


# Each gives the times at which steps ended.
PEERS = {
    LOCKSTEP: _in_step,
    DDP: _raw_ddp,
    TENSORFLOW: _elsewhere("tensorflow", "bench.tensorflow_ps", packed=False),
    PACKED: _elsewhere("tensorflow", "bench.tensorflow_ps"),
    # Lent our packages, it computes with the very torch we do.
    RAY: _elsewhere("ray", "bench.ray_ps", sysconfig.get_path("purelib")),
}
