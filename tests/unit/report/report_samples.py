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


def a_host(name: str = "box", **changes: Any) -> dict[str, Any]:
    def rate(mean: float) -> dict[str, float]:
        return {"mean": mean, "peak": 2 * mean}

    return {
        "host": name,
        "seconds": 6.0,
        "cores": [{"core": 0, **rate(91.0)}, {"core": 1, **rate(71.0)}, {"core": 2, **rate(0.0)}],
        "usable": [0, 1],
        "iowait_pct": rate(0.3),
        "steal_pct": rate(4.0),
        "running": rate(3.0),
        "load": 2.2,
        "memory_available_mb": 24_000.0,
        "swap_used_mb": 0.0,
        "swapped_in_mb_s": rate(1.5),
        "swapped_out_mb_s": rate(0.5),
        "nics": [
            {"name": "lo", "speed_mbit": None, "sent_mb_s": rate(83.5), "received_mb_s": rate(1)},
            {"name": "eth0", "speed_mbit": 1000, "sent_mb_s": None, "received_mb_s": rate(0.1)},
        ],
        "disks": [
            {
                "name": "nvme0n1",
                "read_mb_s": rate(12.0),
                "written_mb_s": rate(0.3),
                "busy_pct": rate(7.0),
            }
        ],
        "pressure_pct": {"cpu": rate(83.0), "memory": rate(2.0), "io": rate(0.4)},
        "gpus": [],
        **changes,
    }


def a_gpu(index: int, **changes: Any) -> dict[str, Any]:
    return {
        "index": index,
        "uuid": f"GPU-{index}",
        "name": "Tesla V100-SXM2-16GB",
        "roles": [f"worker-{index}"],
        "utilisation_pct": {"mean": 88.0, "peak": 99.0},
        "memory_mb": 12_345.0,
        "memory_total_mb": 16_160.0,
        "sm_clock_mhz": {"mean": 1_173.0, "peak": 1_380.0},
        "sm_clock_pct": 85.0,
        "memory_clock_mhz": {"mean": 833.0, "peak": 877.0},
        "memory_clock_pct": 95.0,
        "power_w": {"mean": 214.0, "peak": 298.0},
        "power_limit_w": 300.0,
        "temperature_c": {"mean": 61.0, "peak": 66.0},
        "slowed_pct": {"power": 50.0},
        **changes,
    }


def gave(peer: str, sent: float | None, received: float = 0.0) -> dict[str, Any]:
    return {
        "peer": peer,
        "sent_mb": sent,
        "received_mb": received,
        "messages_sent": 3,
        "messages_received": None,
    }
