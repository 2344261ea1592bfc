"""Scores: by an evaluator beside training, at the end by all, and stopping once it is enough."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from contract_tasks import Net, Slow, SlowNormed

import paceline
from paceline.exchange.catalog import STRATEGIES

pytestmark = [pytest.mark.parallel, pytest.mark.timeout(60, method="signal")]

CREWS: list[dict[str, Any]] = [
    {"strategy": "single"},
    {"strategy": "allreduce", "workers": 2},
    {"strategy": "ps-sync", "workers": 2, "transport": "shm"},
    {"strategy": "ps-sync", "workers": 2, "transport": "tcp"},
    {"strategy": "ps-async", "workers": 2, "transport": "shm"},
    {"strategy": "ps-async", "workers": 2, "transport": "tcp"},
    {"strategy": "independent", "workers": 2},
]
RELATIVES: list[dict[str, Any]] = [
    {"strategy": "ssp", "workers": 2, "transport": "shm"},
    {"strategy": "hogwild", "workers": 2},
    {"strategy": "local-sgd", "workers": 2, "transport": "shm", "sync_every": 5},
    {"strategy": "local-sgd", "workers": 2, "transport": "tcp", "sync_every": 5},
    {"strategy": "ps-sync", "workers": 3, "transport": "shm", "backup": 1},
    {"strategy": "ps-sync", "workers": 3, "transport": "tcp", "backup": 1},
]


def named(crew: dict[str, Any]) -> str:
    return "-".join(map(str, crew.values()))


def accuracy(task: paceline.Task, state: dict[str, Any]) -> float:
    model = task.model()
    model.load_state_dict(state)
    test = task.data().test
    with torch.inference_mode():
        model.eval()
        return float(task.metrics(model, test.batch(np.arange(len(test))))["accuracy"])


@pytest.mark.matrix(5)
@pytest.mark.parametrize(
    ("crew", "kind"),
    [*((crew, Slow) for crew in CREWS), *((crew, SlowNormed) for crew in CREWS[2:4])],
    ids=lambda value: named(value) if isinstance(value, dict) else value.__name__,
)
def test_the_evaluator_scores_beside_training(
    crew: dict[str, Any], kind: type[Net], runs: Path
) -> None:
    run = paceline.fit(kind(), batch=8, steps=100, evaluator=True, out=runs, **crew)
    assert run.status == "done"
    assert "evaluator" in {role["role"] for role in run.roles}
    scores = [score for score in run.folder.scores() if score.role == "evaluator"]
    assert scores
    for score in scores:
        assert score.count == 50
        assert not score.final
        assert 0 <= score.values["accuracy"] <= 1
    assert [score.step for score in scores] == sorted({score.step for score in scores})
    others = {score.final for score in run.folder.scores() if score.role != "evaluator"}
    assert others == {True}  # the workers do not stop for scoring


@pytest.mark.matrix(6)
@pytest.mark.parametrize("crew", [*CREWS[:-1], *RELATIVES], ids=named)
def test_the_final_score_is_that_of_the_saved_parameters(crew: dict[str, Any], runs: Path) -> None:
    """Workers that end with the same parameters score a part of the test samples each."""
    run = paceline.fit(Net(), batch=8, epochs=3, lr=0.3, out=runs, **crew)
    final = [score for score in run.folder.scores() if score.final]
    assert [score.count for score in final] == [50]
    assert run.quality["accuracy"] == pytest.approx(accuracy(Net(), run.parameters()), abs=1e-6)
    epochs = [score for score in run.folder.scores() if not score.final]
    seen = [score.epoch for score in epochs]
    if STRATEGIES[crew["strategy"]].samples == "slices" and "backup" not in crew:
        assert seen == [1, 2, 3]
    else:  # worker-0's own view of where the epochs end; it may not be in all of them
        assert seen == sorted(set(seen))
    assert all(score.count == 50 for score in epochs)


def test_workers_that_do_not_exchange_have_a_score_each(runs: Path) -> None:
    run = paceline.fit(Net(), strategy="independent", workers=3, batch=8, epochs=2, out=runs)
    final = [score for score in run.folder.scores() if score.final]
    assert sorted(score.role for score in final) == ["worker-0", "worker-1", "worker-2"]
    losses = {score.values["loss"] for score in final}
    assert len(losses) == 3
    assert all(role["accuracy"] is not None for role in run.roles)


@pytest.mark.matrix(6)
@pytest.mark.parametrize("evaluator", [False, True])
@pytest.mark.parametrize("crew", CREWS[:-1], ids=named)
def test_a_reached_target_ends_the_run(crew: dict[str, Any], evaluator: bool, runs: Path) -> None:
    run = paceline.fit(
        Slow(), batch=8, epochs=1000, target_accuracy=0.34, evaluator=evaluator, out=runs, **crew
    )
    assert run.status == "done"
    assert [event["kind"] for event in run.summary["events"]] == ["target"]
    assert run.summary["seconds"]["to_target"] is not None
    workers = [role for role in run.roles if role["role"].startswith("worker-")]
    assert sum(role["samples"] for role in workers) < 1000 * 203 / 2
    assert run.parameters()


def test_never_scored_is_allowed(runs: Path) -> None:
    run = paceline.fit(Net(), batch=8, steps=3, evaluate="never", out=runs)
    assert run.folder.scores() == []
    assert run.quality["accuracy"] is None
