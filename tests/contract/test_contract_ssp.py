"""`ssp`: nobody is more than `bound` rounds ahead, and every push is applied exactly once."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from contract_tasks import Counting, CountingMuch, Lagging

import paceline
from paceline.store.steps import read_steps

pytestmark = [pytest.mark.parallel, pytest.mark.timeout(60, method="signal")]


def steps_of(run: paceline.Run) -> list[Any]:
    workers = [role["role"] for role in run.roles if role["role"].startswith("worker-")]
    return [read_steps(run.folder.path / "steps" / f"{role}.steps") for role in workers]


def too_far(steps: list[Any], bound: int) -> int:
    """How often a worker began a round before another had pushed that of `bound` rounds before.

    A push lies between its arrival and its end; who has taken all of its steps holds up nobody.
    """
    found = 0
    for ahead, other in permutations(steps, 2):
        begins, pushes = ahead["time"][:-1], other["arrival"]  # of rounds 2…, and of 1…
        needs = np.arange(2, 2 + len(begins)) - bound
        some = (needs >= 1) & (needs <= len(pushes))
        found += int((begins[some] < pushes[needs[some] - 1]).sum())
        gone = needs > len(pushes)
        found += int((begins[gone] < pushes[-1]).sum())
    return found


@pytest.mark.parametrize("bound", [1, 2, 3])
@pytest.mark.parametrize("transport", ["shm", "tcp"])
def test_nobody_gets_too_far_ahead(transport: str, bound: int, runs: Path) -> None:
    workers, steps = 3, 30
    run = paceline.fit(
        Lagging(1000, slow="worker-1", seconds=0.009, others=0.003),
        strategy="ssp",
        workers=workers,
        bound=bound,
        servers=2,
        transport=transport,
        steps=steps,
        evaluate="never",
        lr=1.0,
        out=runs,
    )
    recorded = steps_of(run)
    assert sum(map(len, recorded)) == workers * steps
    assert too_far(recorded, bound) == 0
    if bound > 1:
        assert too_far(recorded, bound - 1) > 0  # as far as it may, it does get
    assert torch.equal(run.parameters()["weights"], torch.full((1001,), float(workers * steps)))
    servers = [role["steps"] for role in run.roles if role["role"].startswith("server-")]
    assert servers == [workers * steps] * 2


def test_without_a_bound_they_get_further(runs: Path) -> None:
    """What the test above would find in ps-async."""
    run = paceline.fit(
        Lagging(1000, slow="worker-1", seconds=0.009, others=0.001),
        strategy="ps-async",
        workers=3,
        steps=30,
        evaluate="never",
        lr=1.0,
        out=runs,
    )
    assert too_far(steps_of(run), 3) > 0


@pytest.mark.parametrize("transport", ["shm", "tcp"])
def test_four_workers_and_an_uneven_tail(transport: str, runs: Path) -> None:
    """They run out of samples at different rounds, and whoever does holds up nobody."""
    run = paceline.fit(
        Counting(101), strategy="ssp", workers=4, transport=transport, epochs=3, lr=1.0, out=runs
    )
    assert run.summary["spec"]["bound"] == 3
    assert torch.equal(run.parameters()["weights"], torch.full((1001,), 3 * 26.0))
    assert too_far(steps_of(run), 3) == 0


@pytest.mark.parametrize("codec", ["none", "int8"])
def test_in_blocks(codec: str, runs: Path) -> None:
    """Each block has a gate of its own; a gradient of equal numbers loses nothing to the codec."""
    run = paceline.fit(
        CountingMuch(120),
        strategy="ssp",
        workers=3,
        bound=1,
        transport="tcp",
        codec=codec,
        epochs=1,
        evaluate="never",
        lr=1.0,
        out=runs,
    )
    for value in run.parameters().values():
        assert torch.equal(value, torch.full_like(value, 30.0))
