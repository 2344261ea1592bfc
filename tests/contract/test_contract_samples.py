"""Every sample once an epoch, whoever takes it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from contract_tasks import Counting

import paceline
from paceline.exchange.catalog import STRATEGIES

pytestmark = [pytest.mark.parallel, pytest.mark.timeout(60, method="signal")]

CREWS: list[dict[str, Any]] = [
    {"strategy": "single"},
    {"strategy": "independent", "workers": 3},
    {"strategy": "allreduce", "workers": 3},
    {"strategy": "ps-sync", "workers": 3, "transport": "shm"},
    {"strategy": "ps-sync", "workers": 3, "transport": "tcp"},
    {"strategy": "ps-sync", "workers": 3, "transport": "tcp", "replicas": 1},
    {"strategy": "ps-async", "workers": 3, "transport": "shm"},
    {"strategy": "ps-async", "workers": 3, "transport": "tcp"},
    {"strategy": "ps-async", "workers": 3, "transport": "tcp", "replicas": 1},
    {"strategy": "ssp", "workers": 3, "transport": "shm"},
    {"strategy": "ssp", "workers": 3, "transport": "tcp"},
    {"strategy": "ssp", "workers": 3, "transport": "tcp", "replicas": 1},
    {"strategy": "local-sgd", "workers": 3, "transport": "shm"},
    {"strategy": "hogwild", "workers": 3},
]


def rows_seen(folder: Path) -> Counter[int]:
    return Counter(int(line) for file in folder.iterdir() for line in file.read_text().splitlines())


@pytest.mark.matrix(8)
@pytest.mark.parametrize("samples", [97, 101])
@pytest.mark.parametrize("crew", CREWS, ids=lambda crew: "-".join(map(str, crew.values())))
def test_every_sample_once_an_epoch(
    crew: dict[str, Any], samples: int, runs: Path, tmp_path: Path
) -> None:
    """97 leaves one sample for a last round of three; 101 leaves five."""
    seen = tmp_path / "seen"
    seen.mkdir()
    run = paceline.fit(Counting(samples, seen), epochs=3, evaluate="never", out=runs, **crew)
    assert rows_seen(seen) == Counter(dict.fromkeys(range(samples), 3))
    workers = [role for role in run.roles if role["role"].startswith("worker-")]
    assert len(workers) == crew.get("workers", 1)
    assert sum(role["samples"] for role in workers) == 3 * samples


LEASED = [crew for crew in CREWS if crew["strategy"] in ("ps-async", "ssp")]


@pytest.mark.matrix(2)
@pytest.mark.parametrize("crew", LEASED, ids=lambda crew: "-".join(map(str, crew.values())))
def test_also_where_batches_are_added_up(crew: dict[str, Any], runs: Path, tmp_path: Path) -> None:
    """A lease is then in whole steps: 101 samples are 9 steps of 12."""
    seen = tmp_path / "seen"
    seen.mkdir()
    task = Counting(101, seen)
    run = paceline.fit(task, epochs=2, accumulate=3, lr=1.0, evaluate="end", out=runs, **crew)
    assert rows_seen(seen) == Counter(dict.fromkeys(range(101), 2))
    assert run.quality["updates"] == 2 * 9


@pytest.mark.matrix(6)
@pytest.mark.parametrize("crew", CREWS, ids=lambda crew: "-".join(map(str, crew.values())))
def test_steps_are_a_limit_for_each_worker(crew: dict[str, Any], runs: Path) -> None:
    """Also where it lies beyond one epoch: 101 samples are 9 rounds of 3 workers."""
    run = paceline.fit(Counting(101), steps=13, evaluate="never", out=runs, **crew)
    workers = [role for role in run.roles if role["role"].startswith("worker-")]
    assert sum(role["steps"] for role in workers) == 13 * len(workers)
    if STRATEGIES[crew["strategy"]].samples == "slices":
        assert {role["steps"] for role in workers} == {13}
