"""Sparse logistic regression against plain torch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from paceline.data.open import open_data
from paceline.errors import TaskError
from paceline.exchange.tables import make_dense, tables_of
from paceline.spec import RunSpec
from paceline.tasks.load import load_task
from paceline.tasks.sparse_linear import SparseLinear
from paceline.tasks.sparse_logreg import SparseLogreg, log_odds

FEATURES = 2000


@pytest.fixture
def task(tmp_path: Path) -> SparseLogreg:
    spec = RunSpec(
        task="sparse-logreg", data="clicks:300", features=FEATURES, data_dir=str(tmp_path)
    )
    made = load_task(spec)
    assert isinstance(made, SparseLogreg)
    return made


@pytest.mark.parametrize("dense", [False, True])
def test_gradients_are_those_of_autograd(task: SparseLogreg, dense: bool) -> None:
    model, data = task.model(), task.data()
    assert isinstance(model, SparseLinear)
    if dense:
        make_dense(model)
        assert not tables_of(model)
    torch.nn.init.normal_(model.weight)
    rows, labels = data.train.batch(np.arange(40))
    weight, bias = (p.detach().clone().requires_grad_() for p in (model.weight, model.bias))
    z = weight[rows.ids.long(), 0].view(40, -1).sum(1) + bias
    loss = torch.nn.functional.binary_cross_entropy_with_logits(z, labels)
    (0.5 * loss).backward()
    assert task.gradients(model, (rows, labels), 0.5) == pytest.approx(loss.item(), rel=1e-5)
    assert model.weight.grad is not None
    assert model.weight.grad.is_sparse != dense
    torch.testing.assert_close(model.weight.grad.to_dense(), weight.grad, rtol=1e-4, atol=1e-7)
    torch.testing.assert_close(model.bias.grad, bias.grad, rtol=1e-4, atol=1e-7)
    torch.testing.assert_close(model(rows), z.detach(), rtol=1e-5, atol=1e-5)


def test_gradients_of_parts_add_up(task: SparseLogreg) -> None:
    data = task.data()
    batch = data.train.batch(np.arange(30))
    whole, parts = task.model(), task.model()
    task.gradients(whole, batch, 1.0)
    for begin, end in ((0, 10), (10, 30)):
        piece = tuple(column[begin:end] for column in batch)
        task.gradients(parts, piece, (end - begin) / 30)
    for one, other in zip(whole.parameters(), parts.parameters(), strict=True):
        torch.testing.assert_close(one.grad.to_dense(), other.grad.to_dense(), rtol=1e-4, atol=1e-7)


def test_room_for_more_features_than_the_data_has_and_none_for_fewer(tmp_path: Path) -> None:
    open_data(f"clicks:50x{FEATURES}", str(tmp_path))
    asked = {"task": "sparse-logreg", "data": f"clicks:50x{FEATURES}", "data_dir": str(tmp_path)}
    assert load_task(RunSpec(**asked, features=5000)).model().weight.shape == (5000, 1)
    with pytest.raises(TaskError, match="the data has 2,000"):
        load_task(RunSpec(**asked, features=100)).model()


def test_the_same_rows_whatever_pieces_they_are_made_in(tmp_path: Path) -> None:
    from paceline.data.sparse.generate import clicks

    whole = clicks(0, 100, FEATURES, 3)
    parts = [clicks(0, 30, FEATURES, 3), clicks(30, 70, FEATURES, 3)]
    assert np.array_equal(whole.rows.ids, np.concatenate([part.rows.ids for part in parts]))
    assert np.array_equal(whole.rows.labels, np.concatenate([p.rows.labels for p in parts]))
    assert whole.rows.ids.min() >= 0
    assert whole.rows.ids.max() < FEATURES
    assert not np.array_equal(whole.rows.ids, clicks(0, 100, FEATURES, 4).rows.ids)


def test_the_bias_begins_with_the_log_odds_of_the_labels(task: SparseLogreg) -> None:
    train = task.data().train
    labels = train.batch(np.arange(len(train)))[1]
    share = float(labels.mean())
    begun = task.model().bias.item()
    assert begun == pytest.approx(np.log(share / (1 - share)), abs=0.02)


@pytest.mark.parametrize("label", [0.0, 1.0])
def test_labels_that_are_all_alike_have_finite_odds(label: float) -> None:
    class Alike:
        def __len__(self) -> int:
            return 3000

        def batch(self, rows: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
            assert rows.max() < 3000
            return torch.empty(len(rows)), torch.full((len(rows),), label)

    assert 5 < abs(log_odds(Alike())) < 20
