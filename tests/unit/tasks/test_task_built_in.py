from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from paceline.data.arrays import Arrays
from paceline.data.base import Batch, Data
from paceline.errors import TaskError
from paceline.server.catalog import RULES
from paceline.tasks.base import Task
from paceline.tasks.lenet import IMAGE, ChannelsLast, LeNet
from paceline.tasks.mlp import MLP
from paceline.tasks.softmax import Softmax

BUILT_IN = (Softmax, LeNet, MLP)
SMALL = "synthetic:120x1x28x28:10"


def parameters(model: nn.Module) -> int:
    return sum(p.numel() for p in model.parameters())


def on(kind: type[Task], name: str) -> Task:
    task = kind()
    task.data_name = name
    return task


@pytest.mark.parametrize(
    ("kind", "count"), [(Softmax, 7_850), (LeNet, 61_706), (MLP, 20_037_642)]
)  # fmt: skip
def test_the_models_have_their_published_sizes(kind: type[Task], count: int) -> None:
    with torch.device("meta"):
        assert parameters(kind().model()) == count


@pytest.mark.parametrize("kind", BUILT_IN)
def test_defaults_are_names_and_numbers_a_spec_would_take(kind: type[Task]) -> None:
    assert kind.batch >= 1
    assert kind.epochs >= 1
    assert kind.lr > 0
    assert kind.optimizer in RULES


@pytest.mark.parametrize("kind", [Softmax, LeNet])
def test_a_step_against_the_gradient_lowers_the_loss(kind: type[Task]) -> None:
    torch.manual_seed(0)
    task = on(kind, SMALL)
    model, batch = task.model(), task.data().train.batch(np.arange(100))
    before = task.loss(model, batch)
    before.backward()  # type: ignore[no-untyped-call]
    with torch.no_grad():
        for p in model.parameters():
            assert p.grad is not None
            p.sub_(0.01 * p.grad)
        assert task.loss(model, batch) < before


@pytest.mark.parametrize("kind", [Softmax, LeNet])
def test_metrics_are_loss_and_accuracy_means(kind: type[Task]) -> None:
    torch.manual_seed(0)
    task = on(kind, SMALL)
    model, (x, y) = task.model().requires_grad_(False), task.data().test.batch(np.arange(20))
    found = task.metrics(model, (x, y))
    assert set(found) == {"loss", "accuracy"}
    assert float(found["loss"]) == pytest.approx(float(task.loss(model, (x, y))))
    hits = sum(int(model(x)[i].argmax() == y[i]) for i in range(20))
    assert float(found["accuracy"]) == pytest.approx(hits / 20)


@pytest.mark.parametrize("kind", [Softmax, MLP])
def test_any_shape_fits_where_samples_are_flattened(kind: type[Task]) -> None:
    task = on(kind, "synthetic:12x2x3x2:5")
    with torch.device("meta"):
        model = task.model()
        assert model(torch.empty(4, 2, 3, 2)).shape == (4, 5)


def test_lenet_refuses_data_it_has_no_layers_for() -> None:
    with pytest.raises(TaskError, match=r"1x28x28, and its data has samples of 784"):
        on(LeNet, "synthetic:100x784").model()
    with pytest.raises(TaskError, match="samples of 3x28x28"):
        on(LeNet, "synthetic:100x3x28x28").model()


@pytest.mark.parametrize("kind", BUILT_IN)
def test_data_that_says_too_little_is_refused(kind: type[Task]) -> None:
    samples = Arrays(np.zeros((3, 1, 28, 28), np.float32))
    task = kind()
    task._data = Data(train=samples, test=samples)
    with pytest.raises(TaskError, match="shape"):
        task.model()
    task._data = Data(train=samples, test=samples, shape=IMAGE)
    with pytest.raises(TaskError, match="classes"), torch.device("meta"):
        task.model()


def test_channels_last_changes_neither_values_nor_gradients() -> None:
    torch.manual_seed(0)
    model = on(LeNet, SMALL).model()
    assert isinstance(model, nn.Sequential)
    plain = copy.deepcopy(model)
    plain[0] = nn.Identity()
    x = torch.rand(7, *IMAGE)
    marked = model[0](x)
    assert torch.equal(marked, x)
    assert marked.data_ptr() == x.data_ptr()
    assert model[1](marked).is_contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(model(x), plain(x))
    model(x).square().sum().backward()
    plain(x).square().sum().backward()
    for mine, theirs in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, theirs.grad)


def test_lenet_trains_with_its_parameters_in_one_buffer() -> None:
    torch.manual_seed(0)
    model = on(LeNet, SMALL).model()
    flat = torch.cat([p.detach().reshape(-1) for p in model.parameters()])
    gradient, start = torch.zeros_like(flat), 0
    for p in model.parameters():
        stop = start + p.numel()
        p.data, p.grad = flat[start:stop].view(p.shape), gradient[start:stop].view(p.shape)
        start = stop
    before = model(torch.rand(2, *IMAGE)).square().sum()
    before.backward()
    assert gradient.abs().sum() > 0
    flat.zero_()
    assert model(torch.rand(2, *IMAGE)).abs().sum() == 0


def test_channels_last_holds_for_any_batch() -> None:
    for count in (0, 1, 5):
        assert ChannelsLast()(torch.rand(count, *IMAGE)).shape == (count, *IMAGE)


def test_data_is_opened_once() -> None:
    task = on(Softmax, SMALL)
    assert task.data() is task.data()
    assert on(Softmax, SMALL).data() is not task.data()


def test_the_seed_reaches_the_data() -> None:
    drawn = []
    for seed in (0, 1):
        task = on(Softmax, SMALL)
        task.seed = seed
        drawn.append(task.data().train.batch(np.arange(3))[0])
    assert not torch.equal(*drawn)


def test_a_loss_of_ones_own_is_what_metrics_tell() -> None:
    class Doubled(Softmax):
        def loss(self, model: nn.Module, batch: Batch) -> Tensor:
            return 2 * super().loss(model, batch)

    task = on(Doubled, SMALL)
    model = task.model().requires_grad_(False)
    found = task.metrics(model, task.data().test.batch(np.arange(5)))
    assert float(found["loss"]) == pytest.approx(2 * np.log(10), rel=1e-5)


def test_a_task_without_a_model_says_so() -> None:
    with pytest.raises(NotImplementedError, match=r"Task must define model\(\)"):
        Task().model()


def found(task: Task, model: nn.Module, batch: Batch, weight: float) -> tuple[float, list[Tensor]]:
    """The loss and the gradients of two goes, which add up."""
    model.zero_grad()
    losses = [task.gradients(model, batch, weight) for _ in range(2)]
    assert losses[0] == losses[1]
    return losses[0], [p.grad.clone() for p in model.parameters() if p.grad is not None]


@pytest.mark.parametrize("kind", [Softmax, LeNet])
@pytest.mark.parametrize("weight", [1.0, 0.3])
@pytest.mark.parametrize("count", [1, 50])
def test_a_tasks_gradients_are_autograds(kind: type[Task], weight: float, count: int) -> None:
    task = on(kind, SMALL)
    model = task.model()
    with torch.no_grad():
        for p in model.parameters():
            p.normal_(0, 0.1)
    batch = task.data().train.batch(np.arange(count))
    loss, gradients = found(task, model, batch, weight)
    model.zero_grad()
    expected = nn.functional.cross_entropy(model(batch[0]), batch[1])
    (2 * weight * expected).backward()
    assert loss == pytest.approx(expected.item(), rel=1e-5)
    for p, gradient in zip(model.parameters(), gradients, strict=True):
        torch.testing.assert_close(gradient, p.grad, rtol=1e-5, atol=1e-6)


def test_a_loss_or_a_model_of_ones_own_has_gradients_of_its_own() -> None:
    class Halved(Softmax):
        def loss(self, model: nn.Module, batch: Batch) -> Tensor:
            return super().loss(model, batch) / 2

    class Deeper(Softmax):
        def model(self) -> nn.Module:
            return nn.Sequential(nn.Flatten(), nn.Linear(784, 10), nn.Linear(10, 10))

    task = on(Softmax, SMALL)
    model, batch = task.model(), task.data().train.batch(np.arange(20))
    loss, gradients = found(task, model, batch, 1.0)
    half, halves = found(on(Halved, SMALL), model, batch, 1.0)
    assert half == pytest.approx(loss / 2)
    torch.testing.assert_close([2 * g for g in halves], gradients)
    deeper = on(Deeper, SMALL)
    assert len(found(deeper, deeper.model(), batch, 1.0)[1]) == 4
