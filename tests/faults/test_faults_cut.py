"""Connections that are cut, or go silent: for a while, for longer than the lease, and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from faults_tools import ALL, task
from torch import Tensor

import paceline

pytestmark = [pytest.mark.parallel, pytest.mark.timeout(60, method="signal")]

WAYS = [
    *[("ps-sync-tcp", "cut"), ("ps-sync-tcp", "mute")],
    *[("ps-async-tcp", "mute"), ("ssp-tcp", "cut")],
]
BATCH, EPOCHS = 10, 12


def train(runs: Path, crew: str, *inject: str, **more: Any) -> paceline.Run:
    asked = ALL[crew]
    rate = BATCH * (asked["workers"] if asked["strategy"] == "ps-sync" else 1)
    fields = {"epochs": EPOCHS, "lr": float(rate), "evaluate": "never", "batch": BATCH}
    return paceline.fit(task("Counting"), out=runs, inject=inject, **(fields | asked | more))


def told(run: paceline.Run) -> list[tuple[str, str]]:
    return [(event["role"], event["kind"]) for event in run.summary["events"]]


def counted(run: paceline.Run) -> Tensor:
    seen: Tensor = run.parameters()["seen"]
    return seen


@pytest.mark.matrix(1)
@pytest.mark.parametrize(("crew", "how"), WAYS)
def test_a_short_one_changes_nothing(crew: str, how: str, runs: Path) -> None:
    run = train(runs, crew, f"{how}:worker-1-server-0@0.2s+0.3s")
    assert told(run) == [("worker-1", "injected")]
    assert counted(run).eq(EPOCHS).all()
    (fault,) = run.summary["faults"]
    assert fault["what"] == f"{how} off from server-0"
    assert 0.3 <= fault["seconds"] < 5


@pytest.mark.matrix(1)
@pytest.mark.parametrize(("crew", "how"), WAYS)
def test_after_its_lease_nobody_waits_and_it_is_welcome_back(
    crew: str, how: str, runs: Path
) -> None:
    run = train(runs, crew, f"{how}:worker-1-server-0@0.4s+1s", lease=0.4, epochs=24)
    kinds = [("worker-1", kind) for kind in ("injected", "absent", "back")]
    assert told(run) == kinds
    seen = counted(run)
    if crew == "ps-sync-tcp":
        # What it had computed of a round that closed without it came late, and was dropped.
        assert (seen < 23.5).sum() <= 2 * BATCH
        assert seen.max() <= 24 + ALL[crew]["workers"]
    else:
        assert seen.eq(24).all()


def test_a_server_that_is_replaced_meanwhile_knows_of_it(runs: Path) -> None:
    faults = ("cut:worker-1-server-0@0.2s+0.6s", "kill:server-0@0.4s")
    run = train(runs, "ps-async-tcp", *faults)
    assert ("server-0", "back") in told(run)
    assert counted(run).eq(EPOCHS).all()
