"""No server holds or moves more than 1.05 times the mean, whatever the shapes of the layers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from contract_tasks import Net
from torch import nn

import paceline
from paceline.data.base import Data

pytestmark = [pytest.mark.parallel, pytest.mark.timeout(60, method="signal")]

SERVERS, MOST = 4, 1.05


class Lopsided(Net):
    """One tensor is nearly all of the model."""

    def model(self) -> nn.Module:
        wide = nn.Linear(6, 50_000, bias=False)
        return nn.Sequential(wide, nn.AdaptiveAvgPool1d(16), nn.Linear(16, 3))


class Words(paceline.Task):
    """Nearly all of it is a sparse table, of which few rows are used most."""

    def model(self) -> nn.Module:
        return nn.Sequential(nn.EmbeddingBag(9_001, 8, sparse=True), nn.Linear(8, 2))

    def data(self) -> Data:
        rng = np.random.default_rng(4)
        words = (9_001 * rng.random((400, 30)) ** 3).astype(np.int64)
        arrays = paceline.Arrays(words, (words.sum(1) > 60_000).astype(np.int64))
        return Data(train=arrays, test=arrays, classes=2)


@pytest.mark.parametrize("task", [Lopsided(), Words()], ids=["one-tensor", "one-table"])
@pytest.mark.parametrize("transport", ["shm", "tcp"])
def test_every_server_has_as_much_as_the_others(
    task: paceline.Task, transport: str, runs: Path
) -> None:
    how: dict[str, Any] = {"strategy": "ps-sync", "transport": transport, "servers": SERVERS}
    fields = {"workers": 2, "batch": 50, "steps": 8, "optimizer": "sgd", "evaluate": "never"}
    run = paceline.fit(task, out=runs, **how, **fields)
    servers = [role for role in run.roles if role["role"].startswith("server-")]
    assert len(servers) == SERVERS
    workers = [role for role in run.roles if role["role"].startswith("worker-")]
    by_server = [sum(moved(worker, server["role"]) for worker in workers) for server in servers]
    for shares in ([server["holds_mb"] for server in servers], by_server):
        assert min(shares) > 0
        assert max(shares) <= MOST * sum(shares) / SERVERS


def moved(worker: dict[str, Any], server: str) -> float:
    return sum(t["sent_mb"] + t["received_mb"] for t in worker["traffic"] if t["peer"] == server)
