"""Summaries as `summarise` makes them, with only what a test wants to differ."""

from __future__ import annotations

from typing import Any

PHASES = {"data": 0.3, "compute": 3.1, "exchange": 0.9, "wait": 2.0, "update": 0.1}


def a_role(name: str, **changes: Any) -> dict[str, Any]:
    worker = name.startswith("worker-")
    return {
        "role": name,
        "host": "box",
        "device": "cpu",
        "samples": 1_000_200 if worker else None,
        "steps": 5_001 if worker else 15_003,
        "seconds": 7.43,
        "accuracy": 0.9227 if worker else None,
        "cpu_pct": 61.3,
        "memory_mb": 312.2,
        "sent_mb": 157.04,
        "received_mb": 157.04,
        "phases": PHASES if worker else None,
        "staleness": None,
        **changes,
    }


def a_summary(
    strategy: str = "ps-async", *, rate: float | None = 41_230.0, **changes: Any
) -> dict[str, Any]:
    workers = 1 if strategy == "single" else 3
    served = strategy.startswith("ps-")
    stale = {"mean": 1.934, "max": 5, "histogram": {"1": 3}} if strategy == "ps-async" else None
    roles = [a_role(f"worker-{i}", staleness=stale) for i in range(workers)]
    return {
        "run": f"20261115-215038-softmax-{strategy}-{workers}w",
        "dir": f"/runs/20261115-215038-softmax-{strategy}-{workers}w",
        "status": "done",
        "spec": {
            "task": "softmax",
            "data": None,
            "strategy": strategy,
            "workers": workers,
            "servers": 1 if served else None,
            "transport": "shm" if served else "auto",
            "batch": 200,
            "lr": 0.5,
        },
        "throughput": {
            "samples_per_second": rate,
            "low": rate and rate * 0.99,
            "high": rate and rate * 1.01,
            "warmup_steps": 120,
            "steps": 14_880,
        },
        "seconds": {"total": 7.43, "train": 6.1, "startup": 0.9, "to_target": None},
        "quality": {"accuracy": 0.9231, "loss": 0.2731},
        "roles": [*roles, a_role("server-0")] if served else roles,
        "verdict": {
            "bottleneck": "cores",
            "sentence": "cores: 3 workers and 1 server take turns on 2 cores.",
            "evidence": {},
            "advice": ["try --workers 1", "or add a host"],
        },
        "events": [],
        **changes,
    }
