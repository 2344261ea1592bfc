"""What real roles count: by peer, both ends alike; and of the host, twice a second."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

import paceline
from paceline.store.folder import RunFolder

pytestmark = [pytest.mark.parallel, pytest.mark.timeout(60, method="signal")]

SMALL: dict[str, Any] = {"data": "synthetic:300x8:3", "batch": 10}
Matrix = dict[str, dict[str, dict[str, Any]]]


def trained(runs: Path, **crew: Any) -> tuple[paceline.Run, Matrix]:
    run = paceline.fit("softmax", out=runs, **(SMALL | crew))
    told = {r["role"]: {t["peer"]: t for t in r["traffic"]} for r in run.summary["roles"]}
    return run, told


def test_over_tcp_both_ends_count_the_same_messages(runs: Path) -> None:
    crew = {"strategy": "ps-async", "workers": 2, "servers": 2, "transport": "tcp"}
    _, told = trained(runs, steps=100, **crew)
    for worker, server in itertools.product(("worker-0", "worker-1"), ("server-0", "server-1")):
        here, there = told[worker][server], told[server][worker]
        assert here["messages_sent"] == there["messages_received"] > 10
        assert here["messages_received"] == there["messages_sent"] > 10
        # A server also counts how both introduce themselves.
        assert there["received_mb"] == pytest.approx(here["sent_mb"], abs=0.0002)
        assert there["sent_mb"] == pytest.approx(here["received_mb"], abs=0.0002)
        assert told[worker]["supervisor"]["messages_sent"] > 0


def test_a_standby_is_a_peer(runs: Path) -> None:
    crew = {"strategy": "ps-sync", "workers": 2, "transport": "tcp", "replicas": 1}
    _, told = trained(runs, steps=30, **crew)
    assert told["server-0"]["standby-0"]["messages_sent"] >= 30
    assert told["standby-0"]["server-0"]["received_mb"] == pytest.approx(
        told["server-0"]["standby-0"]["sent_mb"], abs=0.001
    )


def test_over_shared_memory_servers_have_what_workers_gave(runs: Path) -> None:
    crew = {"strategy": "ps-sync", "workers": 2, "servers": 2, "transport": "shm"}
    run, told = trained(runs, steps=20, **crew)
    for server in ("server-0", "server-1"):
        assert set(told[server]) == {"worker-0", "worker-1"}
        assert all(t["messages_received"] == 20 for t in told[server].values())
    sent = {r["role"]: r["sent_mb"] for r in run.summary["roles"]}
    own = [t["sent_mb"] for peer, t in told["worker-0"].items() if peer != "supervisor"]
    assert sum(own) == pytest.approx(sent["worker-0"])


def test_all_reduce_goes_around_a_ring(runs: Path) -> None:
    run, told = trained(runs, strategy="allreduce", workers=3, steps=20)
    assert told["worker-0"]["worker-2"]["sent_mb"] > 0
    assert told["worker-0"]["worker-2"]["received_mb"] == 0
    assert told["worker-2"]["worker-0"]["received_mb"] == told["worker-0"]["worker-2"]["sent_mb"]
    assert told["worker-0"]["worker-1"]["messages_sent"] is None
    sent = run.summary["roles"][0]["sent_mb"]
    assert told["worker-0"]["worker-2"]["sent_mb"] == pytest.approx(sent)


@pytest.mark.alone
def test_roles_and_host_are_sampled_twice_a_second(runs: Path) -> None:
    run, _ = trained(runs, strategy="ps-sync", workers=2, epochs=200)
    folder = RunFolder.open(run.dir)
    begin, seconds = (run.summary["seconds"][key] for key in ("startup", "train"))
    mine = [s for s in folder.resources() if s.role == "worker-0"]
    for samples in (mine, folder.hosts()):
        times = [s.time for s in samples if begin - 0.5 <= s.time <= begin + seconds + 0.5]
        assert len(times) >= 2 * seconds
        assert max(b - a for a, b in itertools.pairwise(times)) < 0.75  # if the machine lets us
    last = mine[-1]
    assert last.threads
    assert last.peak_bytes
    assert last.voluntary is not None
    assert last.read_bytes is not None
    (host,) = run.summary["hosts"]
    assert host["cores"]
    assert host["nics"]
