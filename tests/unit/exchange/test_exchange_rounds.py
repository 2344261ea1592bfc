"""Workers in step over shared memory die at any access to it, in any order, and come back.

Whatever happens, all agree on who took part in a round, every sample is in one share, every chunk
gets every round once, and nobody waits for ever.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
import torch
from rounds_tools import Stage, on_stage

from paceline.exchange import shared_sync
from paceline.server import elementwise

pytestmark = pytest.mark.timeout(120)

SEEDS = 12  # plays of each crew


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(elementwise, "CHUNK", 2)
    return iter(())


def played(kind: str, seed: int, **how: Any) -> Stage:
    stage = Stage(kind, f"{kind} {sorted(how.items())} {seed}", **how)
    with on_stage(stage):
        stage.play()
    return stage


def in_step(stage: Stage) -> None:
    """What must be true of a play of those who all wait for all."""
    rounds = [stage.turnouts[now] for now in range(1, max(stage.turnouts, default=0) + 1)]
    if not stage.nobody:
        assert len(rounds) == stage.rounds
    for now, turnout in enumerate(rounds[1:], start=1):
        # Whoever took part in the round before, or was let in there, has a share of this one.
        members = rounds[now - 1].members()
        assert {worker for worker, _ in turnout.pushes} <= set(members)
        shares = [stage.used[now, w] for w, _ in turnout.pushes]
        ends = [0, *(end for _, end in shares)]
        assert all(begin >= end for (begin, _), end in zip(shares, ends, strict=False))
        if len(shares) == len(members):
            assert ends[-1] == stage.whole
            assert sum(end - begin for begin, end in shares) == stage.whole
    for turnout, now in zip(rounds, range(len(rounds)), strict=True):
        for worker, weight in turnout.pushes:
            begin, end = stage.used[now, worker]
            assert weight == end - begin


def all_have(stage: Stage, due: torch.Tensor) -> None:
    if stage.nobody:
        return
    assert stage.finals.keys() == set(range(stage.workers))
    for final in stage.finals.values():
        torch.testing.assert_close(final, due, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("deaths", [0, 1, 3])
@pytest.mark.parametrize("rule", ["sgd", "adam", "lamb"])
def test_a_small_model(rule: str, deaths: int, seed: int) -> None:
    stage = played("small", seed, rule=rule, deaths=deaths)
    in_step(stage)
    all_have(stage, stage.due([stage.turnouts[n].pushes for n in sorted(stage.turnouts)]))


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("deaths", [0, 1, 3])
@pytest.mark.parametrize("rule", ["sgd", "adam", "lars", "lamb"])
def test_a_large_model(rule: str, deaths: int, seed: int) -> None:
    stage = played("sync", seed, rule=rule, deaths=deaths, shards=1 + seed % 4)
    in_step(stage)
    all_have(stage, stage.due([stage.turnouts[n].pushes for n in sorted(stage.turnouts)]))


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("shards", [1, 3])
def test_a_large_gradient_that_died_with_its_worker_is_missing_once(
    shards: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And only where its worker was the server."""
    monkeypatch.setattr(shared_sync, "LARGE", 1)
    stage = played("sync", seed, shards=shards, deaths=2)
    in_step(stage)
    if stage.nobody:
        return
    due = stage.due([stage.turnouts[n].pushes for n in sorted(stage.turnouts)])
    for final in stage.finals.values():
        off = (final - due).abs()
        assert (off > 1e-4).sum() <= 2 * stage.whole
        assert off.max() <= 3 * stage.workers


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("kind", ["small", "sync"])
def test_with_shares_by_speed(kind: str, seed: int) -> None:
    stage = played(kind, seed, balance=True, deaths=2, rounds=8)
    in_step(stage)
    all_have(stage, stage.due([stage.turnouts[n].pushes for n in sorted(stage.turnouts)]))


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("deaths", [0, 1, 3])
@pytest.mark.parametrize("rule", ["sgd", "adam"])
def test_rounds_that_go_without_somebody(rule: str, deaths: int, seed: int) -> None:
    stage = played("backup", seed, rule=rule, deaths=deaths)
    assert not stage.nobody
    assert sorted(stage.closed) == list(range(stage.rounds))
    for now, pushes in stage.closed.items():
        for worker, weight in pushes:
            begin, end = stage.used[now, worker]
            assert weight == end - begin
    all_have(stage, stage.due([stage.closed[now] for now in range(stage.rounds)]))


@pytest.mark.parametrize("kind", ["small", "sync", "backup"])
def test_two_workers_and_one_alone(kind: str) -> None:
    for seed in range(SEEDS):
        stage = played(kind, seed, workers=2, shards=2, deaths=Random(seed).randint(0, 2))
        if kind != "backup":
            in_step(stage)
