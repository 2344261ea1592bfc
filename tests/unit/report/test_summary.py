"""summarise: the whole contract, from a folder alone, whatever state the run is in."""

from __future__ import annotations

import json
import math
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paceline.report.summary import summarise
from paceline.spec import RunSpec
from paceline.store.folder import RunFolder
from paceline.store.steps import StepWriter
from paceline.types import (
    PHASES,
    Disk,
    Event,
    Gpu,
    HostResources,
    Nic,
    Resources,
    Score,
    Traffic,
)

CONTRACT = [
    *("run", "dir", "status", "spec", "recipe", "throughput", "seconds", "quality", "roles"),
    *("hosts", "verdict", "events", "faults"),
]
ROLE = [
    *("role", "inside", "host", "device", "restarts", "samples", "steps", "dropped", "seconds"),
    *("holds_mb", "coding", "accuracy", "gpu", "cpu_pct", "delay_pct", "threads", "memory_mb"),
    *("peak_memory_mb", "context_switches", "major_faults", "read_mb", "written_mb", "traffic"),
    *("sent_mb", "received_mb", "phases", "spans", "staleness", "share"),
]
HOST = [
    *("host", "seconds", "cores", "usable", "iowait_pct", "steal_pct", "running", "load"),
    *("memory_available_mb", "swap_used_mb", "swapped_in_mb_s", "swapped_out_mb_s", "nics"),
    *("disks", "pressure_pct", "gpus"),
]
GPU = [
    *("index", "uuid", "name", "roles", "utilisation_pct", "memory_mb", "memory_total_mb"),
    *("sm_clock_mhz", "sm_clock_pct", "memory_clock_mhz", "memory_clock_pct", "power_w"),
    *("power_limit_w", "temperature_c", "slowed_pct"),
]


def make(root: Path, strategy: str = "ps-async", workers: int = 2, **rest: Any) -> RunFolder:
    return RunFolder.create(root, RunSpec(strategy=strategy, workers=workers, **rest))


def take_steps(
    folder: RunFolder, role: str, count: int = 200, start: float = 2.0, loss: float = 0.5
) -> None:
    """Steps of 10 ms, nearly all of it compute, 64 samples each."""
    writer = StepWriter(folder.steps_path(role))
    for i in range(count):
        end = start + 0.01 * (i + 1)
        writer.append(
            *(end, i, 0, 64, loss),
            *(0.0005, 0, 0.003, 0.005, 0, 0.0006, 0.0004, 0.0005, 0),
            *(end - 0.0015, i, i % 3),
        )
    writer.close()


def role(name: str, **rest: Any) -> dict[str, Any]:
    return {
        "role": name,
        "pid": 1,
        "host": "here",
        "device": "cpu",
        "state": "done",
        "threads": 1,
        "cores": None,
        "inside": None,
        "report": {},
    } | rest


def used(time: float, role: str, cpu: float, memory: int = 50_000_000) -> Resources:
    return Resources(
        time=time, role=role, cpu_seconds=cpu, memory_bytes=memory, sent=3_000_000, received=0
    )


def score(time: float, role: str, accuracy: float, *, final: bool = False) -> Score:
    values = {"accuracy": accuracy, "loss": 0.3}
    return Score(time=time, role=role, step=1, epoch=1, final=final, values=values, count=100)


def by_role(summary: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {each["role"]: each for each in summary["roles"]}


@pytest.fixture
def done(tmp_path: Path) -> RunFolder:
    folder = make(tmp_path, target_accuracy=0.8)
    folder.write_live(
        "done",
        os.getpid(),
        [
            role("worker-0", report={"sent": 7_000_000, "received": 8_000_000}),
            role("worker-1"),
            role("server-0", report={"applied": 400, "phases": {"update": 1.5}, "seconds": 2.2}),
            role("evaluator"),
        ],
    )
    take_steps(folder, "worker-0")
    take_steps(folder, "worker-1", start=2.1)
    for time in (0.5, 2.5, 3.5, 4.5):
        folder.append_resources([used(time, "worker-0", 0.9 * time, int(time * 10_000_000))])
    folder.append_score(score(2.7, "evaluator", 0.7))
    folder.append_score(score(3.1, "evaluator", 0.85))
    folder.append_score(score(4.6, "worker-0", 0.91, final=True))
    folder.append_event(Event(time=0.1, role="supervisor", kind="started"))
    folder.append_event(Event(time=5.0, role="supervisor", kind="done", detail="all"))
    folder.close()
    return folder


def test_the_contract_is_kept_to_the_letter(done: RunFolder) -> None:
    summary = summarise(done)
    assert list(summary) == CONTRACT
    assert list(summary["throughput"]) == [
        *("samples_per_second", "low", "high", "warmup_steps", "steps")
    ]
    assert list(summary["seconds"]) == ["total", "train", "startup", "to_target"]
    assert list(summary["verdict"]) == [
        *("bottleneck", "sentence", "evidence", "advice"),
        *("roles", "confidence", "why", "conflicts", "findings"),
    ]
    assert all(list(each) == ROLE for each in summary["roles"])
    assert list(by_role(summary)["worker-0"]["phases"]) == list(PHASES)
    assert summary["events"][1] == {
        "time": 5.0,
        "role": "supervisor",
        "kind": "done",
        "detail": "all",
    }
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary


def test_a_finished_run(done: RunFolder) -> None:
    summary = summarise(done)
    assert summary["run"] == done.name
    assert summary["dir"] == str(done.path)
    assert summary["status"] == "done"
    assert summary["spec"]["target_accuracy"] == 0.8
    assert summary["throughput"]["samples_per_second"] == pytest.approx(12_800, rel=0.01)
    assert summary["seconds"] == {
        "total": 5.0,
        "train": pytest.approx(2.1),
        "startup": pytest.approx(2.0),
        "to_target": 3.1,
    }
    assert summary["quality"] == {"accuracy": 0.91, "loss": 0.3}
    assert summary["verdict"]["bottleneck"] == "compute"


def test_roles_of_a_finished_run(done: RunFolder) -> None:
    roles = by_role(summarise(done))
    worker, server = roles["worker-0"], roles["server-0"]
    assert (worker["samples"], worker["steps"]) == (200 * 64, 200)
    assert worker["seconds"] == pytest.approx(2.0)
    assert worker["accuracy"] == 0.91
    assert worker["cpu_pct"] == pytest.approx(90)
    assert worker["memory_mb"] == 45.0
    assert (worker["sent_mb"], worker["received_mb"]) == (7.0, 8.0)
    assert worker["phases"]["compute"] == pytest.approx(1.6)
    assert worker["spans"] == pytest.approx(
        {
            **{"data": 0.1, "copy": 0, "forward": 0.6, "backward": 1.0, "encode": 0},
            **{"push": 0.12, "pull": 0.08, "wait": 0.1, "update": 0},
        }
    )
    assert server["spans"] is None  # nor of any that were not recorded
    assert worker["staleness"] == {
        "mean": pytest.approx(0.995),
        "max": 2,
        "histogram": {"0": 67, "1": 67, "2": 66},
    }
    assert (server["samples"], server["steps"], server["seconds"]) == (None, 400, 2.2)
    assert server["phases"] == {"update": 1.5}
    assert (server["accuracy"], server["staleness"], server["cpu_pct"]) == (None, None, None)
    assert roles["evaluator"]["accuracy"] is None
    assert roles["worker-1"]["sent_mb"] is None


def test_the_spec_is_the_resolved_one(tmp_path: Path) -> None:
    from paceline.types import Facts

    folder = make(tmp_path, "single", 1)
    facts = Facts(parameters=1, samples=2, batch=32, epochs=1, lr=0.1, optimizer="sgd")
    folder.write_resolved(folder.spec.with_(batch=32), facts, recipe={"peak": 0.2})
    assert summarise(folder)["spec"]["batch"] == 32
    assert summarise(folder)["recipe"] == {"peak": 0.2}


def test_cpu_falls_back_to_what_is_around_training_and_survives_a_restart(tmp_path: Path) -> None:
    folder = make(tmp_path, "single", 1)
    folder.write_live("done", os.getpid(), [role("worker-0")])
    take_steps(folder, "worker-0", count=10)
    for time, cpu in ((0.0, 0.0), (1.0, 1.0), (3.0, 0.5), (4.0, 1.5)):
        folder.append_resources([used(time, "worker-0", cpu)])
    worker = by_role(summarise(folder))["worker-0"]
    assert worker["cpu_pct"] == pytest.approx(25)  # half a second in the new life's two
    assert worker["sent_mb"] == 3.0


def test_counters_of_a_role_count_all_its_lives(tmp_path: Path) -> None:
    folder = make(tmp_path, "single", 1)
    folder.write_live("done", os.getpid(), [role("worker-0")])
    for time, count in ((0.0, 10), (1.0, 30), (2.0, 5), (3.0, 9)):
        folder.append_resources(
            [
                Resources(
                    time=time,
                    role="worker-0",
                    cpu_seconds=time,
                    memory_bytes=1,
                    sent=0,
                    received=0,
                    peak_bytes=2_000_000 * count,
                    threads=count,
                    voluntary=count,
                    involuntary=2 * count,
                    delay_seconds=time / 4,
                    major_faults=count,
                    read_bytes=1_000_000 * count,
                    written_bytes=0,
                )
            ]
        )
    worker = by_role(summarise(folder))["worker-0"]
    assert worker["context_switches"] == {"voluntary": 39, "involuntary": 78}
    assert (worker["major_faults"], worker["read_mb"], worker["written_mb"]) == (39, 39.0, 0.0)
    assert (worker["peak_memory_mb"], worker["threads"]) == (60.0, 30)
    assert worker["delay_pct"] == pytest.approx(25)


def test_a_run_from_before_all_that_was_counted(done: RunFolder) -> None:
    """As it was written then: fewer fields, no hosts."""
    old = {"time": 2.5, "role": "worker-1", "cpu_seconds": 1.0, "memory_bytes": 9}
    with (done.path / "resources.jsonl").open("a") as file:
        file.write(json.dumps(old | {"sent": 1, "received": 2}) + "\n")
    summary = summarise(done)
    assert summary["hosts"] == []
    worker = by_role(summary)["worker-1"]
    assert worker["context_switches"] == {"voluntary": None, "involuntary": None}
    unknown = ("peak_memory_mb", "major_faults", "read_mb", "written_mb", "threads", "delay_pct")
    assert [worker[key] for key in unknown] == [None] * len(unknown)
    assert worker["traffic"] == []


def test_who_sent_what_to_whom(tmp_path: Path) -> None:
    """What a role said last, or else what was sampled last; the other end of it for a server that
    has no process of its own."""
    folder = make(tmp_path, "ps-async", 1)
    final = [["server-0", 8_000_000, 6_000_000, 4, 3]]
    folder.write_live(
        "done",
        os.getpid(),
        [
            role("worker-0", report={"traffic": final}),
            role("server-0", inside="worker-0", report={"sent": 1}),
        ],
    )
    control = Traffic("supervisor", 1_000, 2_000, 5, 6)
    before = Traffic("server-0", 4_000_000, 3_000_000, 2, 2)
    folder.append_resources([replace(used(1.0, "worker-0", 0.1), traffic=(before, control))])
    roles = by_role(summarise(folder))

    def entry(*values: Any) -> dict[str, Any]:
        names = ("peer", "sent_mb", "received_mb", "messages_sent", "messages_received")
        return dict(zip(names, values, strict=True))

    assert roles["worker-0"]["traffic"] == [
        entry("server-0", 8.0, 6.0, 4, 3),
        entry("supervisor", 0.001, 0.002, 5, 6),
    ]
    assert roles["server-0"]["traffic"] == [entry("worker-0", 6.0, 8.0, 3, 4)]


def test_hosts_while_the_run_trained(done: RunFolder) -> None:
    gpu = Gpu(index=0, uuid="GPU-1", name="a GPU", utilisation=50.0, sm_clock=850)
    slow = replace(gpu, utilisation=90.0, sm_clock_max=1000, slowed=("power",))
    for time in (0.5, 2.2, 3.9, 4.5):  # training is from 2.0 to 4.1
        done.append_host(
            HostResources(
                time=time,
                host="here",
                cores=(time, None, time / 2),
                steal_seconds=time / 10,
                swapped_in=int(time * 1_000_000),
                nics={"eth0": Nic(int(time * 2_000_000), 0)},
                speeds={"eth0": 1000},
                disks={"sda": Disk(0, int(time * 3_000_000), time / 4)},
                pressure={"memory": time / 20},
                gpus=(gpu, slow)[time > 3 :][:1],
            )
        )
    live = done.read_live()["roles"]
    live[0]["gpu"] = "GPU-1"
    done.write_live("done", os.getpid(), live)
    (host,) = summarise(done)["hosts"]
    assert list(host) == HOST
    assert (host["host"], host["seconds"]) == ("here", pytest.approx(1.7))

    def steadily(value: float) -> Any:
        return {"mean": pytest.approx(value), "peak": pytest.approx(value)}

    assert host["cores"] == [{"core": 0, **steadily(100)}, {"core": 2, **steadily(50)}]
    assert host["steal_pct"] == steadily(5)  # of both cores
    assert host["swapped_in_mb_s"] == steadily(1)
    assert host["nics"] == [
        {
            "name": "eth0",
            "speed_mbit": 1000,
            "sent_mb_s": steadily(2),
            "received_mb_s": steadily(0),
        }
    ]
    assert host["disks"][0]["busy_pct"] == steadily(25)
    assert host["pressure_pct"] == {"memory": steadily(5)}
    assert host["iowait_pct"] is None
    assert list(host["gpus"][0]) == GPU
    assert host["gpus"][0]["roles"] == ["worker-0"]
    assert host["gpus"][0]["utilisation_pct"] == {"mean": 70, "peak": 90}
    assert host["gpus"][0]["sm_clock_pct"] == pytest.approx(85)
    assert host["gpus"][0]["slowed_pct"] == {"power": 50}


def test_workers_with_parameters_of_their_own_have_their_own_accuracy(tmp_path: Path) -> None:
    folder = make(tmp_path, "independent", 3)
    folder.write_live("done", os.getpid(), [role(f"worker-{i}") for i in range(3)])
    for i in range(3):
        take_steps(folder, f"worker-{i}")
    folder.append_score(score(4.0, "worker-0", 0.5, final=True))
    folder.append_score(score(4.1, "worker-1", 0.6, final=True))
    summary = summarise(folder)
    assert [each["accuracy"] for each in summary["roles"]] == [0.5, 0.6, None]
    assert summary["roles"][0]["staleness"] is None
    assert summary["verdict"]["evidence"]["straggler"] is None


def test_synchronous_rounds_have_a_straggler(tmp_path: Path) -> None:
    folder = make(tmp_path, "ps-sync", 2)
    take_steps(folder, "worker-0")
    take_steps(folder, "worker-1", start=2.002)
    summary = summarise(folder)
    assert summary["verdict"]["evidence"]["straggler"]["role"] == "worker-1"
    assert [each["role"] for each in summary["roles"]] == ["worker-0", "worker-1"]


def test_servers_inside_a_worker_take_no_core(tmp_path: Path) -> None:
    folder = make(tmp_path, "ps-sync", 2)
    take_steps(folder, "worker-0")
    inside = [role("worker-0"), role("server-0", inside="worker-0"), role("server-1")]
    folder.write_live("done", os.getpid(), inside)
    assert summarise(folder)["verdict"]["evidence"]["servers"] == 1


def test_a_run_that_has_only_begun(tmp_path: Path) -> None:
    summary = summarise(make(tmp_path))
    assert list(summary) == CONTRACT
    assert summary["status"] == "starting"
    assert summary["roles"] == []
    assert summary["quality"] == {"accuracy": None, "loss": None}
    assert set(summary["seconds"].values()) == {None}
    assert summary["throughput"]["samples_per_second"] is None
    assert summary["verdict"]["bottleneck"] == "unknown"


@pytest.mark.parametrize("state", ["running", "failed", "stopped"])
def test_a_run_broken_off_with_a_torn_row(tmp_path: Path, state: str) -> None:
    folder = make(tmp_path)
    take_steps(folder, "worker-0", count=50)
    with folder.steps_path("worker-0").open("ab") as file:
        file.write(b"torn")
    folder.steps_path("worker-1").touch()
    folder.append_score(score(2.2, "worker-0", 0.4))
    folder.write_live(state, os.getpid(), [role("worker-0"), role("worker-1", report=None)])
    summary = summarise(folder)
    assert summary["status"] == state
    assert summary["quality"]["accuracy"] == 0.4
    roles = by_role(summary)
    assert roles["worker-0"]["steps"] == 50
    assert (roles["worker-1"]["steps"], roles["worker-1"]["phases"]) == (None, None)
    assert summary["seconds"]["total"] == pytest.approx(2.5)


def test_a_run_whose_launcher_died_is_lost(tmp_path: Path) -> None:
    folder = make(tmp_path)
    folder.write_live("running", 2**22 + 1, [role("worker-0")])
    assert summarise(folder)["status"] == "lost"


def test_a_diverged_run_is_still_valid_json(tmp_path: Path) -> None:
    folder = make(tmp_path, "single", 1, target_accuracy=0.9)
    take_steps(folder, "worker-0", loss=math.nan)
    values = {"loss": math.inf, "accuracy": math.nan}
    folder.append_score(
        Score(time=3.0, role="worker-0", step=1, epoch=1, final=True, values=values)
    )
    summary = summarise(folder)
    assert summary["quality"] == {"accuracy": None, "loss": None}
    assert summary["seconds"]["to_target"] is None
    json.dumps(summary, allow_nan=False)


def test_summary_holds_plain_values_only(done: RunFolder) -> None:
    def check(value: Any) -> None:
        assert not isinstance(value, np.generic)
        for each in value.values() if isinstance(value, dict) else value:
            if isinstance(each, dict | list):
                check(each)
            else:
                assert each is None or type(each) in (str, int, float, bool)

    check(summarise(done))
