"""From records to evidence: whose time counts, what pauses are, who comes late and why."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from evidence_samples import SHARED, SYNC

from paceline.diagnose.evidence import Evidence
from paceline.diagnose.gather import gather
from paceline.diagnose.records import Records
from paceline.store.spans import Spans
from paceline.store.steps import STEP, Steps
from paceline.types import FINE, PARTS, PAUSES, SERVING, Resources

ROUNDS = 60


def taken(begin: float = 0.0, pause: float = 0.0, **seconds: float) -> Steps:
    """As many steps, one after the other, each of these phases and after a pause."""
    rows = np.zeros(ROUNDS, dtype=STEP)
    whole = sum(seconds.values())
    rows["step"] = np.arange(1, ROUNDS + 1)
    rows["time"] = begin + (pause + whole) * np.arange(1, ROUNDS + 1)
    for name in FINE:
        rows[name] = seconds.get(name, 0.0)
    for name, parts in PARTS.items():
        rows[name] = sum(rows[part] for part in parts)
    before = ("data", "copy", "forward", "backward")
    late = sum(seconds.get(name, 0.0) for name in before)
    rows["arrival"] = rows["time"] - whole + late
    rows["samples"] = 64
    return rows


def spans(names: tuple[str, ...], rows: list[tuple[float, ...]]) -> Spans:
    return np.array(rows, dtype=[("begin", "<f8"), *((name, "<f4") for name in names)])


def found(spec: Any = SHARED, **records: Any) -> Evidence:
    return gather(Records(spec=spec, **records))


def test_nothing_is_known_of_nothing() -> None:
    assert found().path == {}
    assert found().workers == ()


def test_in_rounds_the_path_is_that_of_whoever_comes_last() -> None:
    slow = taken(forward=0.08, wait=0.02)
    fast = taken(forward=0.04, wait=0.06)
    e = found(steps={"worker-0": fast, "worker-1": slow})
    assert e.path["forward"] == pytest.approx(0.8)
    assert e.path["wait"] == pytest.approx(0.2)
    assert sum(e.path.values()) == pytest.approx(1)
    assert e.straggler is not None
    assert e.straggler.role == "worker-1"
    assert (e.late, e.own) == (pytest.approx(0.4, rel=0.05), pytest.approx(1.0))


def test_who_comes_late_without_working_longer_has_a_slow_connection() -> None:
    near = taken(forward=0.02, wait=0.08)
    far = taken(begin=0.04, forward=0.02, pull=0.08)
    e = found(SYNC, steps={"worker-0": near, "worker-1": far})
    assert e.straggler is not None
    assert e.straggler.role == "worker-1"
    assert e.own == pytest.approx(0.0, abs=0.01)


def test_without_rounds_everybody_counts_alike() -> None:
    steps = {"worker-0": taken(forward=0.1), "worker-1": taken(forward=0.05, wait=0.05)}
    e = found(SHARED.with_(strategy="ps-async"), steps=steps)
    assert e.path["forward"] == pytest.approx(0.75)
    assert e.straggler is None


def test_pauses_are_what_the_worker_said() -> None:
    steps = taken(pause=0.1, forward=0.1)
    told = [(end + 0.01, 0.06, 0.02, 0.0) for end in steps["time"]]
    e = found(steps={"worker-0": steps}, spans={"worker-0": spans(PAUSES, told)})
    shares = [e.path[name] for name in ("evaluation", "checkpoint", "other")]
    assert shares == pytest.approx([0.3, 0.1, 0.1], rel=0.05)


def test_a_servers_time_is_that_of_the_window() -> None:
    rows = [
        (at / 10, *(0.05 if n in ("apply", "idle") else 0.0 for n in SERVING)) for at in range(100)
    ]
    roles = [{"role": "server-0", "host": "box"}]
    steps = {"worker-0": taken(forward=0.1)}
    e = found(SYNC, steps=steps, roles=roles, spans={"server-0": spans(SERVING, rows)})
    assert e.servers[0].shares["apply"] == pytest.approx(0.5)


def test_a_server_that_waits_for_the_network_is_not_busy() -> None:
    rows = [(at / 10, *(0.1 if n == "receive" else 0.0 for n in SERVING)) for at in range(100)]
    used = [
        Resources(time=t, role="server-0", cpu_seconds=0.1 * t, memory_bytes=1, sent=0, received=0)
        for t in np.arange(0.0, 8.0, 0.5)
    ]
    e = found(
        SYNC,
        steps={"worker-0": taken(forward=0.1)},
        roles=[{"role": "server-0"}],
        spans={"server-0": spans(SERVING, rows)},
        resources=used,
    )
    server = e.servers[0]
    assert server.busy == pytest.approx(0.1)
    assert server.wire == pytest.approx(0.9)


def test_a_run_of_an_older_version_has_the_five_phases() -> None:
    steps = taken(forward=0.06, push=0.04)
    for name in FINE:
        if name not in ("data", "wait", "update"):
            steps[name] = np.nan
    e = found(steps={"worker-0": steps})
    assert (e.path["compute"], e.path["exchange"]) == (pytest.approx(0.6), pytest.approx(0.4))


def test_threads_and_coding_are_what_roles_say() -> None:
    roles = [
        {"role": "worker-0", "threads": 4, "report": {"coding": {"ratio": 30.0, "error": 0.1}}},
        {"role": "worker-1", "threads": 4},
        {"role": "server-0", "inside": "worker-0"},
    ]
    e = found(roles=roles, steps={"worker-0": taken(forward=0.1)}, usable=[0, 1], cores=4)
    assert (e.threads, e.ratio, e.cores, e.servers) == (4, 30.0, 2, ())
