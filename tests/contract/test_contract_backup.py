"""`ps-sync --backup k`: a round closes with the first N − k gradients; what is late is dropped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from contract_tasks import Absent, Counting, CountingMuch, Lagging, Net

import paceline
from paceline.data.sampler import Order, slices

pytestmark = [pytest.mark.parallel, pytest.mark.timeout(60, method="signal")]

transports = pytest.mark.parametrize("transport", ["shm", "tcp"])


def roles_of(run: paceline.Run, kind: str) -> dict[str, dict[str, Any]]:
    return {role["role"]: role for role in run.roles if role["role"].startswith(f"{kind}-")}


@pytest.mark.matrix(2)
@transports
@pytest.mark.parametrize("slow", ["worker-0", "worker-2"])
def test_a_slow_worker_holds_up_nobody(slow: str, transport: str, runs: Path) -> None:
    rounds, seconds = 40, 0.06
    run = paceline.fit(
        Lagging(12 * rounds, slow, seconds),
        strategy="ps-sync",
        workers=3,
        backup=1,
        transport=transport,
        epochs=1,
        evaluate="never",
        lr=1.0,
        out=runs,
    )
    workers = roles_of(run, "worker")
    late = workers.pop(slow)
    assert late["steps"] < rounds / 2
    assert late["dropped"] >= late["steps"] / 2
    assert late["samples"] == 4 * (late["steps"] - late["dropped"])
    for other in workers.values():
        assert other["seconds"] < rounds * seconds * 0.75
        assert other["dropped"] <= late["steps"]  # only where the slow one was in time
        assert other["steps"] >= 0.8 * rounds
    assert roles_of(run, "server")["server-0"]["steps"] == rounds
    assert torch.equal(run.parameters()["weights"], torch.full((1001,), float(rounds)))


@pytest.mark.matrix(2)
@transports
@pytest.mark.parametrize("absent", [0, 2])
def test_without_the_slow_one_it_is_training_on_what_the_others_have(
    absent: int, transport: str, runs: Path, tmp_path: Path
) -> None:
    """203 samples leave 11 for the last round of an epoch: three, four and four."""
    rounds, seed = 20, 3
    folder = tmp_path / "ended"
    folder.mkdir()
    task = Absent(203, f"worker-{absent}", rounds, folder, others=2)
    run = paceline.fit(
        task,
        strategy="ps-sync",
        workers=3,
        backup=1,
        transport=transport,
        batch=8,
        steps=rounds,
        optimizer="momentum",
        lr=0.05,
        seed=seed,
        evaluate="never",
        out=runs,
    )
    workers = roles_of(run, "worker")
    late = workers[f"worker-{absent}"]
    assert (late["steps"], late["dropped"], late["samples"]) == (1, 1, 0)
    assert [w["dropped"] for w in workers.values() if w is not late] == [0, 0]

    data = Net(203).data()
    torch.manual_seed(seed)
    model = Net(203).model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    used = [slices(Order(203, seed), 8, w, 3, None, rounds) for w in range(3) if w != absent]
    for lots in zip(*used, strict=True):
        optimizer.zero_grad()
        rows = np.concatenate([lot.rows for lot in lots])
        Net(203).loss(model, data.train.batch(rows)).backward()
        optimizer.step()
    for name, value in run.parameters().items():
        torch.testing.assert_close(value, model.state_dict()[name], rtol=0, atol=1e-5)


@pytest.mark.matrix(3)
@transports
@pytest.mark.parametrize(("workers", "backup"), [(2, 1), (4, 1), (4, 3)])
def test_rounds_are_as_planned_whoever_is_late(
    workers: int, backup: int, transport: str, runs: Path
) -> None:
    """97 samples: in the last round some have nothing to give, and may be all who are in time."""
    run = paceline.fit(
        Counting(97),
        strategy="ps-sync",
        workers=workers,
        backup=backup,
        transport=transport,
        epochs=3,
        lr=1.0,
        out=runs,
    )
    planned = 3 * -(-97 // (4 * workers))
    assert roles_of(run, "server")["server-0"]["steps"] == planned
    updates = run.parameters()["weights"]
    assert planned - 3 <= updates[0] <= planned
    assert torch.equal(updates, updates[:1].expand(1001))
    assert run.quality["updates"] == updates[0]


def test_several_servers_decide_for_themselves(runs: Path) -> None:
    """Each server closes its own rounds, perhaps with other workers."""
    run = paceline.fit(
        Counting(480),
        strategy="ps-sync",
        workers=3,
        backup=1,
        servers=3,
        epochs=1,
        lr=1.0,
        out=runs,
    )
    assert run.summary["spec"]["transport"] == "tcp"
    assert [server["steps"] for server in roles_of(run, "server").values()] == [40] * 3
    assert torch.equal(run.parameters()["weights"], torch.full((1001,), 40.0))


@transports
def test_in_blocks(transport: str, runs: Path) -> None:
    """Over TCP each block closes its own rounds, while backward makes the others."""
    run = paceline.fit(
        CountingMuch(120),
        strategy="ps-sync",
        workers=3,
        backup=1,
        transport=transport,
        epochs=1,
        evaluate="never",
        lr=1.0,
        out=runs,
    )
    for value in run.parameters().values():
        assert torch.equal(value, torch.full_like(value, 10.0))
    assert roles_of(run, "server")["server-0"]["steps"] == 10


@transports
def test_no_backup_is_ps_sync(transport: str, runs: Path) -> None:
    how: dict[str, Any] = {"strategy": "ps-sync", "workers": 2, "transport": transport}
    one, two = (
        paceline.fit(Net(), batch=8, steps=20, out=runs, **how, **more).parameters()
        for more in ({}, {"backup": 0})
    )
    assert all(torch.equal(value, two[name]) for name, value in one.items())
