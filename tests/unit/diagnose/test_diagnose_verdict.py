"""The verdict names what limits a run and who it is about, and claims nothing from nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from evidence_samples import (
    ALONE,
    SHARED,
    SYNC,
    a_gpu,
    a_host,
    a_server,
    a_use,
    a_worker,
    anything,
    evidence,
    rate,
)
from hypothesis import given
from hypothesis import strategies as st

from paceline.diagnose.causes.facts import others_use
from paceline.diagnose.evidence import Evidence, Part
from paceline.diagnose.gains import batched, fewer, gone
from paceline.diagnose.split import CAUSES, split
from paceline.diagnose.straggler import Straggler
from paceline.diagnose.usage import DiskUse
from paceline.diagnose.verdict import FINDERS, NOTABLE, findings, verdict, weight

LATE = Straggler(role="worker-1", share=0.98, late_seconds=0.05, rounds=100)


def named(e: Evidence) -> tuple[str, list[str]]:
    told = verdict(e)
    json.dumps(told, allow_nan=False)
    return told["bottleneck"], told["roles"]


BOTH = ["worker-0", "worker-1"]


@pytest.mark.parametrize(
    ("e", "cause", "roles"),
    [
        (evidence(SHARED, wait=0.04), "compute", BOTH),
        (evidence(ALONE, data=0.6), "input", ["worker-0"]),
        (
            evidence(SYNC, wait=0.8, steps=20.0, servers=[a_server()]),
            "server-network",
            ["server-0"],
        ),
        (
            evidence(SYNC, wait=0.8, servers=[a_server(cpu=0.9, apply=0.7)]),
            "server-cpu",
            ["server-0"],
        ),
        (evidence(SYNC, wait=0.4, push=0.4, steps=20_000.0), "small-batch", BOTH),
        (evidence(SYNC, encode=0.5, servers=[a_server(decode=0.1)]), "codec", BOTH),
        (evidence(SHARED, evaluation=0.7), "evaluation", BOTH),
        (evidence(ALONE, update=0.7), "update", ["worker-0"]),
        (evidence(SHARED, straggler=LATE, late=0.5), "straggler", ["worker-1"]),
        (
            evidence(SYNC, pull=0.8, straggler=LATE, late=0.6, own=0.0),
            "worker-network",
            ["worker-1"],
        ),
        (evidence(ALONE, other=0.6), "other", ["worker-0"]),
    ],
)
def test_each_cause_is_named_with_its_roles(e: Evidence, cause: str, roles: list[str]) -> None:
    assert named(e) == (cause, roles)


def test_threads_that_take_turns() -> None:
    crowded = replace(a_worker(), use=a_use("worker-0", cpu=1.0, delay=4.0))
    found = verdict(evidence(ALONE, workers=(crowded,), cores=2, threads=8))
    assert found["bottleneck"] == "threads"
    assert found["findings"][0]["advice"][0]["changes"] == {"threads": 2}


def test_roles_that_take_turns() -> None:
    crew = tuple(
        replace(a_worker(n), use=a_use(f"worker-{n}", cpu=0.5, delay=0.5)) for n in range(4)
    )
    found = verdict(evidence(SYNC.with_(workers=4, transport="shm"), workers=crew, cores=2))
    assert found["bottleneck"] == "cores"
    assert "4 workers take turns on 2 cores" in found["sentence"]
    assert found["findings"][0]["advice"][0]["changes"] == {"workers": 2}


def test_who_is_waited_for_may_have_no_core_either() -> None:
    crew = tuple(
        replace(a_worker(n), use=a_use(f"worker-{n}", cpu=0.4, delay=0.6)) for n in range(6)
    )
    few = {"workers": crew, "cores": 2, "wait": 0.3, "update": 0.15}
    found = verdict(evidence(SYNC.with_(workers=6, transport="shm"), **few))
    assert found["bottleneck"] == "cores"
    assert found["findings"][0]["share"] == pytest.approx(0.6, abs=0.01)
    wired = verdict(evidence(SYNC.with_(workers=6, transport="tcp"), **few))
    assert wired["findings"][0]["share"] < 0.4, "there they may wait for bytes"


def test_memory_that_is_short() -> None:
    host = a_host(pressure={"memory": rate(0.6)}, swapped_in=rate(5e7), swapped_out=rate(5e7))
    found = verdict(evidence(SHARED, data=0.1, hosts={"box": host}))
    assert found["bottleneck"] == "memory"
    assert found["findings"][0]["advice"][0]["changes"] == {"batch": 32, "accumulate": 2}
    calm = a_host(pressure={"memory": rate(0.6)})  # of something else: nothing came or went
    assert verdict(evidence(SHARED, hosts={"box": calm}))["bottleneck"] == "compute"


def test_a_disk_that_is_slow() -> None:
    host = a_host(
        pressure={"io": rate(0.65)}, disks={"sda": DiskUse(rate(2e7), rate(0.0), rate(0.97))}
    )
    found = verdict(evidence(ALONE, data=0.7, hosts={"box": host}))
    assert found["bottleneck"] == "disk"
    assert {"sda busy", "read from sda"} <= {f["what"] for f in found["findings"][0]["evidence"]}
    asleep = a_host(pressure={"io": rate(0.0)})
    assert verdict(evidence(ALONE, data=0.7, hosts={"box": asleep}))["bottleneck"] == "input"


def test_a_kernel_that_does_not_tell_of_pressure() -> None:
    """Then disks and cores do: the one is busy, and the others wait."""
    disks = {"sda": DiskUse(rate(2e7), rate(0.0), rate(0.97))}
    host = a_host(disks=disks, iowait=rate(0.8))
    assert verdict(evidence(ALONE, data=0.7, hosts={"box": host}))["bottleneck"] == "disk"
    busy = a_host(disks=disks, iowait=rate(0.0))  # with something that nobody waits for
    assert verdict(evidence(ALONE, data=0.7, hosts={"box": busy}))["bottleneck"] == "input"
    swaps = a_host(disks=disks, iowait=rate(0.8), swapped_in=rate(5e7))
    assert verdict(evidence(SHARED, data=0.1, hosts={"box": swaps}))["bottleneck"] == "memory"


def test_checkpoints_that_are_in_the_way() -> None:
    spec = SHARED.with_(checkpoint_every=5.0)
    found = verdict(evidence(spec, checkpoint=0.6))
    assert found["bottleneck"] == "other"
    assert "with checkpoints and snapshots" in found["sentence"]
    assert found["findings"][0]["advice"][0]["changes"] == {"checkpoint_every": 20.0}
    slow = a_host(pressure={"io": rate(0.65)})
    found = verdict(evidence(spec, checkpoint=0.6, data=0.05, hosts={"box": slow}))
    assert found["bottleneck"] == "disk"
    assert found["findings"][0]["advice"][0]["changes"] == {"checkpoint_every": 20.0}


def test_batches_that_are_long_on_their_way_to_the_device() -> None:
    found = verdict(evidence(SHARED, copy=0.6, data=0.05))
    assert found["bottleneck"] == "input"
    assert "on their way to the device" in found["sentence"]


def test_two_that_are_equally_slow() -> None:
    late = replace(LATE, alike=("worker-3",))
    found = verdict(evidence(SHARED.with_(workers=4), straggler=late, late=0.5, cores=4))
    assert (found["bottleneck"], found["roles"]) == ("straggler", ["worker-1", "worker-3"])
    assert "worker-1 and worker-3, one of which arrives last" in found["sentence"]


def test_others_are_those_on_cores_that_the_run_may_use() -> None:
    """A host of 64 cores, of which the run has two and somebody else the rest."""
    cores = tuple(rate(1.0) for _ in range(64))
    e = evidence(SHARED, hosts={"box": a_host(cores=cores)}, cores=2, usable=frozenset({0, 1}))
    assert others_use(e) == pytest.approx(0.2)  # of two workers at 0.9
    beside = (Part(role="evaluator", host="box", use=a_use("evaluator", cpu=0.2)),)
    assert others_use(replace(e, beside=beside)) == pytest.approx(0.0)


def test_a_gpu_whose_clocks_are_low_speaks_against_computing() -> None:
    """Of those that roles use: 95 % of the memory clock is one that is held back."""
    slow = a_gpu(uuid="GPU-1", sm_share=0.97, memory_share=0.95)
    idle = a_gpu(uuid="GPU-2", sm_share=0.2, memory_share=0.1)
    host = {"box": a_host(gpus=(slow, idle))}
    (against,) = verdict(evidence(SHARED, hosts=host, gpus=frozenset({"GPU-1"})))["conflicts"]
    assert against == "GPU 0 of box ran at 95 % of its memory clock."
    assert not verdict(evidence(SHARED, hosts=host))["conflicts"]


def test_nothing_is_a_verdict_too() -> None:
    told = verdict(evidence(SHARED, wait=0.04))["sentence"]
    assert told == "Nothing: compute-bound at 96 % of the limit; more workers will scale."
    full = verdict(evidence(SHARED, wait=0.04, cores=2))
    assert "more cores or hosts will scale" in full["sentence"]
    assert not full["findings"][0]["advice"][0]["changes"]


def test_of_two_the_larger_comes_first() -> None:
    both = {"straggler": LATE, "late": 0.2}
    assert verdict(evidence(SHARED, data=0.0, evaluation=0.5, **both))["sentence"].endswith(
        " Second: straggler (worker-1), 20 %."
    )
    both["late"] = 0.5
    found = verdict(evidence(SHARED, evaluation=0.25, **both))
    assert [each["cause"] for each in found["findings"][:2]] == ["straggler", "evaluation"]


def test_conflicts_are_told_and_lower_confidence() -> None:
    starved = a_server(cpu=0.1, apply=0.75)
    found = verdict(evidence(SYNC, wait=0.8, servers=[starved]))
    assert found["bottleneck"] == "server-cpu"
    assert "keeps it from its core" in found["conflicts"][0]
    assert found["confidence"] == "medium"
    even = verdict(evidence(ALONE, data=0.35, evaluation=0.35))
    assert "cost about as much" in even["conflicts"][0]


def test_a_short_run_is_not_sure() -> None:
    assert verdict(evidence(SHARED, evaluation=0.7))["confidence"] == "high"
    assert verdict(evidence(SHARED, evaluation=0.7, steps=5.0))["confidence"] == "low"


@given(anything)
def test_shares_add_up_and_nothing_is_claimed_from_nothing(e: Evidence) -> None:
    found = split(e)
    if not e.path:
        assert not found
        assert verdict(e)["bottleneck"] == "unknown"
        return
    assert set(found) == set(CAUSES) == set(FINDERS)
    assert sum(found.values()) == pytest.approx(1.0, abs=1e-6)
    assert min(found.values()) >= -1e-9


@given(anything)
def test_findings_are_ranked_and_gains_are_gains(e: Evidence) -> None:
    found = findings(e)
    weights = [weight(each.cause, each.share) for each in found]
    assert weights == sorted(weights, reverse=True)
    for each in found:
        assert each.share >= NOTABLE
        assert each.sentence
        for advice in each.advice:
            assert 1.0 <= advice.gain.low <= advice.gain.high < float("inf")


@given(anything)
def test_a_verdict_is_json_and_its_changes_are_specs(e: Evidence) -> None:
    told = verdict(e)
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    for each in told["findings"]:
        assert len(each["advice"]) <= 3
        for advice in each["advice"]:
            e.spec.with_(**advice["changes"])  # raises if it is refused


@given(st.floats(0, 1), st.floats(1, 100))
def test_the_laws_of_gains(share: float, times: float) -> None:
    assert 1.0 <= fewer(share, times) <= gone(share)
    assert 1.0 <= batched(share, times) <= times + 1e-9
    assert batched(1.0, times) == pytest.approx(times)
    assert gone(0.5) == 2.0


def test_advice_that_a_spec_refuses_is_not_given() -> None:
    spec = SYNC.with_(inject=["slow:server-0x8"])
    server = a_server(cpu=0.9, apply=0.7)
    told: dict[str, Any] = verdict(evidence(spec, wait=0.8, servers=[server]))["findings"][0]
    assert not any(advice["changes"].get("transport") == "shm" for advice in told["advice"])
    told = verdict(evidence(SYNC, wait=0.8, servers=[server]))["findings"][0]
    assert any(advice["changes"].get("transport") == "shm" for advice in told["advice"])


def test_where_nobody_waits_a_slow_connection_is_one_workers() -> None:
    spec = SYNC.with_(strategy="ps-async")
    crew = (a_worker(0, forward=0.9, wait=0.1), a_worker(1, forward=0.1, wait=0.9))
    server = a_server(receive=0.4)
    e = evidence(spec, wait=0.5, steps=20.0, workers=crew, servers=[server])
    assert named(e) == ("worker-network", ["worker-1"])
    alike = evidence(spec, wait=0.5, steps=20.0, servers=[server])
    assert named(alike) == ("server-network", ["server-0"])


def test_of_several_servers_the_one_that_waits_for_bytes_is_named() -> None:
    two = SYNC.with_(servers=2)
    servers = [a_server(apply=0.1), replace(a_server(receive=0.7), role="server-1")]
    assert named(evidence(two, wait=0.8, steps=20.0, servers=servers)) == (
        "server-network",
        ["server-1"],
    )


def test_who_is_last_by_little_over_a_slow_link_is_not_to_blame() -> None:
    """Of several that share it somebody is always served last."""
    e = evidence(
        SYNC, pull=0.9, steps=20.0, straggler=LATE, late=0.1, own=0.0, servers=[a_server()]
    )
    assert named(e) == ("server-network", ["server-0"])
