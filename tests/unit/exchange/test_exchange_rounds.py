"""Workers in step over shared memory die at any access to it, in any order, and come back.

Whatever happens, all agree on who took part in a round, every sample is in one share, every chunk
gets every round once, and nobody waits for ever.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from rounds_tools import Stage, on_stage

from paceline.exchange import shared_sync
from paceline.server import elementwise

pytestmark = pytest.mark.timeout(120)

PLAYS = {0: 3, 1: 8, 3: 12}  # of each crew, with so many deaths
seeds = pytest.mark.parametrize("seed", range(12))
calm_and_not = pytest.mark.parametrize(
    ("deaths", "seed"), [(deaths, seed) for deaths, many in PLAYS.items() for seed in range(many)]
)


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elementwise, "CHUNK", 2)


def played(kind: str, seed: int, **how: Any) -> Stage:
    """Two to four workers, one to four shards."""
    how = {"workers": 2 + seed % 3, "shards": 1 + seed % 4, **how}
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
            assert sum(end - begin for begin, end in shares) == ends[-1] == stage.whole
    for now, turnout in enumerate(rounds):
        for worker, weight in turnout.pushes:
            begin, end = stage.used[now, worker]
            assert weight == end - begin


def closed(stage: Stage) -> list[list[tuple[int, float]]]:
    if stage.kind == "backup":
        return [stage.closed[now] for now in range(stage.rounds)]
    return [stage.turnouts[now].pushes for now in sorted(stage.turnouts)]


def all_have_what_is_due(stage: Stage) -> None:
    if stage.nobody:
        return
    assert stage.finals.keys() == set(stage.everybody) - stage.left
    for final in stage.finals.values():
        torch.testing.assert_close(final, stage.due(closed(stage)), rtol=1e-4, atol=1e-4)


@pytest.mark.matrix(18)
@calm_and_not
@pytest.mark.parametrize("rule", ["sgd", "adam", "lamb"])
@pytest.mark.parametrize("kind", ["small", "sync"])
def test_in_step(kind: str, rule: str, deaths: int, seed: int) -> None:
    stage = played(kind, seed, rule=rule, deaths=deaths)
    assert not (stage.nobody and deaths < stage.workers)
    in_step(stage)
    all_have_what_is_due(stage)


@pytest.mark.matrix(6)
@seeds
@pytest.mark.parametrize("kind", ["small", "sync"])
def test_with_shares_by_speed(kind: str, seed: int) -> None:
    stage = played(kind, seed, balance=True, deaths=2, rounds=8)
    in_step(stage)
    all_have_what_is_due(stage)


@pytest.mark.matrix(16)
@seeds
@pytest.mark.parametrize("deaths", [0, 2])
@pytest.mark.parametrize("rule", ["sgd", "lamb"])
@pytest.mark.parametrize("kind", ["small", "sync"])
def test_workers_come_and_go(kind: str, rule: str, deaths: int, seed: int) -> None:
    stage = played(kind, seed, rule=rule, deaths=deaths, come=2, go=1 + seed % 3, rounds=8)
    in_step(stage)
    all_have_what_is_due(stage)
    if not deaths:  # every sample of every round was in somebody's gradient
        for turnout in stage.turnouts.values():
            assert sum(weight for _, weight in turnout.pushes) == stage.whole


@pytest.mark.matrix(6)
@seeds
@pytest.mark.parametrize("kind", ["small", "sync"])
def test_they_come_and_go_with_shares_by_speed(kind: str, seed: int) -> None:
    stage = played(kind, seed, balance=True, deaths=seed % 2, come=2, go=2, rounds=10)
    in_step(stage)
    all_have_what_is_due(stage)


@seeds
def test_a_gradient_that_died_with_its_worker_is_missing_where_that_was_the_server(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_sync, "LARGE", 1)
    stage = played("sync", seed, deaths=2)
    in_step(stage)
    for final in stage.finals.values():
        off = (final - stage.due(closed(stage))).abs()
        assert off.max() <= 2 * stage.workers  # a round without it, for each death
        if not sum(stage.lives):
            assert off.max() < 1e-4


@pytest.mark.matrix(10)
@calm_and_not
@pytest.mark.parametrize("rule", ["sgd", "adam"])
def test_rounds_that_go_without_somebody(rule: str, deaths: int, seed: int) -> None:
    stage = played("backup", seed, rule=rule, deaths=deaths)
    assert not stage.nobody
    assert sorted(stage.closed) == list(range(stage.rounds))
    for now, pushes in stage.closed.items():
        for worker, weight in pushes:
            begin, end = stage.used[now, worker]
            assert weight == end - begin
    all_have_what_is_due(stage)
