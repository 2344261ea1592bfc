"""How fast gradients are exchanged: every strategy beside no exchange at all and beside raw DDP.

    python -m bench.exchange                       all models, five repeats, about twelve minutes
    python -m bench.exchange --models softmax --repeats 2

Everything is measured in one interleaved run: each repeat takes every contender once, in an order
that turns, so that the machine's moods fall on all alike. A ratio is that of two contenders of the
same repeat; the table shows its median and its range.
"""

from __future__ import annotations

import argparse
import json
import socket
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import paceline
from bench.machine import facts, sentence
from paceline.measure.rates import throughput
from paceline.store.atomic import write_atomic
from paceline.store.steps import STEP

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "exchange.json"
PAGE = HERE.parent / "docs" / "BENCHMARKS.md"
WORKERS = 2
DDP = "raw DDP"


@dataclass(frozen=True)
class Model:
    task: str
    batch: int
    steps: int
    slow_steps: int  # for contenders on gloo, where a small model's step takes far longer


@dataclass(frozen=True)
class Contender:
    name: str
    strategy: str = ""
    transport: str = "auto"


MODELS = {
    m.task: m
    for m in (
        Model("softmax", 200, 4000, 900),
        Model("lenet", 64, 260, 220),
        Model("mlp", 64, 26, 26),
    )
}
CONTENDERS = (
    Contender("independent", "independent"),
    Contender(DDP),
    Contender("allreduce", "allreduce"),
    Contender("ps-sync shm", "ps-sync", "shm"),
    Contender("ps-async shm", "ps-async", "shm"),
    Contender("ps-sync tcp", "ps-sync", "tcp"),
    Contender("ps-async tcp", "ps-async", "tcp"),
)
# (contender, model, against, least ratio)
WANTED = (
    ("allreduce", "softmax", DDP, 0.97),
    ("allreduce", "lenet", DDP, 0.97),
    ("allreduce", "mlp", DDP, 0.97),
    ("ps-sync shm", "softmax", DDP, 4.0),
    ("ps-async shm", "softmax", DDP, 4.0),
    ("ps-sync shm", "mlp", DDP, 1.3),
    ("ps-async shm", "mlp", DDP, 1.3),
)


def measure(model: Model, contender: Contender, out: Path) -> float:
    """Samples a second."""
    if contender.name == DDP:
        return raw_ddp(model)
    slow = contender.strategy == "allreduce"
    run = paceline.fit(
        model.task,
        strategy=contender.strategy,
        transport=contender.transport,
        workers=WORKERS,
        batch=model.batch,
        steps=model.slow_steps if slow else model.steps,
        optimizer="sgd",
        lr=0.01,
        evaluate="never",
        out=out,
    )
    return float(run.throughput["samples_per_second"])


def raw_ddp(model: Model) -> float:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "bench.raw_ddp", "--task", model.task]
    command += ["--batch", str(model.batch), "--steps", str(model.slow_steps)]
    command += ["--workers", str(WORKERS), "--port", str(port)]
    processes = [
        subprocess.Popen([*command, "--rank", str(rank)], stdout=subprocess.PIPE, cwd=HERE.parent)
        for rank in range(WORKERS)
    ]
    steps = []
    for process in processes:
        printed, _ = process.communicate(timeout=300)
        if process.returncode:
            raise SystemExit("raw DDP failed; see above.")
        ended = json.loads(printed)
        rows = np.zeros(len(ended), dtype=STEP)
        rows["time"], rows["samples"] = ended, model.batch
        rows["step"] = np.arange(1, len(ended) + 1)
        rows["compute"][1:] = np.diff(ended)
        steps.append(rows)
    return throughput(steps).samples_per_second


def ratios(rates: dict[str, list[float]], name: str, against: str) -> list[float]:
    return [a / b for a, b in zip(rates[name], rates[against], strict=True)]


def spread(values: list[float], form: str) -> str:
    middle = format(statistics.median(values), form)
    return f"{middle} ({format(min(values), form)} – {format(max(values), form)})"


def table(model: Model, rates: dict[str, list[float]]) -> list[str]:
    lines = [
        f"### {model.task} [{model.batch}], {WORKERS} workers",
        "",
        "| | samples/s | of `independent` | of raw DDP |",
        "|---|---:|---:|---:|",
    ]
    for name, values in rates.items():
        lines.append(
            f"| {name} | {spread(values, ',.0f')} "
            f"| {spread(ratios(rates, name, 'independent'), '.2f')} "
            f"| {spread(ratios(rates, name, DDP), '.2f')} |"
        )
    return [*lines, ""]


def wanted(all_rates: dict[str, dict[str, list[float]]]) -> list[str]:
    lines = ["| wanted | measured (median, range) | |", "|---|---:|---|"]
    for name, model, against, least in WANTED:
        if model in all_rates:
            found = ratios(all_rates[model], name, against)
            met = "met" if statistics.median(found) >= least else "not met"
            line = f"| {name} on {model}: {least}x {against} | {spread(found, '.2f')} | {met} |"
            lines.append(line)
    return [*lines, ""]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--no-save", action="store_true", help="print only")
    args = parser.parse_args()
    models = [MODELS[name] for name in args.models.split(",")]

    rates: dict[str, dict[str, list[float]]] = {
        m.task: {c.name: [] for c in CONTENDERS} for m in models
    }
    with tempfile.TemporaryDirectory() as out:
        for repeat in range(args.repeats):
            turned = CONTENDERS[repeat % len(CONTENDERS) :] + CONTENDERS[: repeat % len(CONTENDERS)]
            for model in models:
                for contender in turned:
                    rate = measure(model, contender, Path(out))
                    rates[model.task][contender.name].append(rate)
                    told = f"{repeat + 1}/{args.repeats} {model.task:8} {contender.name:14}"
                    print(f"{told} {rate:12,.0f} samples/s", file=sys.stderr, flush=True)

    lines = [line for model in models for line in table(model, rates[model.task])]
    lines += wanted(rates)
    print("\n".join(lines))
    if not args.no_save:
        machine = facts()
        record = {"machine": machine, "repeats": args.repeats, "samples_per_second": rates}
        RESULTS.parent.mkdir(exist_ok=True)
        write_atomic(RESULTS, json.dumps(record, indent=1) + "\n")
        head = [
            "# Benchmarks",
            "",
            "Written by `make bench`; not edited by hand. Medians, with the range over "
            f"{args.repeats} interleaved repeats.",
            "",
            sentence(machine),
            "",
        ]
        write_atomic(PAGE, "\n".join([*head, *lines]))


if __name__ == "__main__":
    main()
