"""A table: the weighted mean of many gradients is one update, in the place that was asked for."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from paceline.server.catalog import LAYERWISE, RULES
from paceline.server.rules import CHUNK, Hyper, make_rule
from paceline.server.shards import cut
from paceline.server.table import Table


def table(size: int, *grads: Tensor, places: int = 1, rule: str = "sgd") -> Table:
    """Parameters from −1 to 1, and a gradient a worker."""
    slots = torch.full((places, size), torch.nan)
    slots[0] = torch.linspace(-1, 1, size)
    rows = torch.stack(grads) if grads else torch.ones(1, size)
    return Table(slots, rows, make_rule(rule, size, Hyper()))


def flat_gradient(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    model.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    return torch.cat([p.grad.reshape(-1) for p in model.parameters()])


@pytest.mark.parametrize("counts", [(5, 5), (7, 2, 1), (1, 30), (3, 1, 4, 1, 5)])
def test_pushes_by_weight_are_the_gradient_of_all_their_samples(counts: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1))
    start = torch.cat([p.detach().reshape(-1) for p in model.parameters()])
    x, y = torch.randn(sum(counts), 4), torch.randn(sum(counts), 1)
    parts = zip(x.split(counts), y.split(counts), strict=True)
    grads = torch.stack([flat_gradient(model, a, b) for a, b in parts])

    held = Table(start.clone().unsqueeze(0), grads, make_rule("sgd", len(start), Hyper()))
    held.apply([(worker, float(count)) for worker, count in enumerate(counts)], lr=0.5, into=0)

    flat_gradient(model, x, y)
    torch.optim.SGD(model.parameters(), lr=0.5).step()
    expected = torch.cat([p.detach().reshape(-1) for p in model.parameters()])
    torch.testing.assert_close(held.slot(0), expected, rtol=0, atol=1e-6)


def test_the_gradients_are_only_read() -> None:
    """They lie where their workers wrote them, and a worker may have to send them again."""
    grads = torch.stack([torch.full((4,), value) for value in (1.0, 2.0, 3.0)])
    before = grads.clone()
    held = Table(torch.zeros(1, 4), grads, make_rule("momentum", 4, Hyper(weight_decay=0.1)))
    for pushes in ([(0, 1.0)], [(0, 1.0), (1, 2.0), (2, 3.0)]):
        held.apply(pushes, lr=1.0, into=0)
    assert torch.equal(grads, before)


def test_a_gradient_of_no_samples_does_not_count() -> None:
    held = table(10, torch.full((10,), torch.nan), torch.ones(10))
    before = held.slot(0).clone()
    held.apply([(0, 0.0), (1, 3.0)], lr=1.0, into=0)
    assert torch.equal(held.slot(0), before - 1)


def test_no_samples_at_all_is_a_version_without_a_change() -> None:
    held = table(10, torch.full((10,), torch.nan), places=2)
    before = held.slot(0).clone()
    held.apply([(0, 0.0)], lr=1.0, into=1)
    assert held.version == 1
    assert torch.equal(held.slot(1), before)
    assert torch.equal(held.slot(0), before)


def test_an_update_goes_beside_the_current_version_and_leaves_it() -> None:
    held = table(10, places=3)
    first = held.slot(0).clone()
    held.apply([(0, 1.0)], lr=1.0, into=2)
    assert (held.current, held.version) == (2, 1)
    assert torch.equal(held.slot(0), first)
    assert torch.equal(held.slot(2), first - 1)
    held.apply([(0, 1.0)], lr=1.0, into=1)
    assert (held.current, held.version) == (1, 2)
    assert torch.equal(held.slot(2), first - 1)
    assert torch.equal(held.slot(1), first - 2)


def test_copy_makes_the_current_version_readable_elsewhere() -> None:
    held = table(10, places=2)
    held.copy(1)
    assert torch.equal(held.slot(1), held.slot(0))
    assert (held.current, held.version) == (0, 0)


@pytest.mark.parametrize("rule", RULES)
def test_more_than_one_chunk_is_the_same_update(rule: str) -> None:
    size = CHUNK + 11
    grads = [torch.linspace(-2, 2, size), torch.linspace(3, -1, size)]
    held = table(size, *grads, rule=rule)
    whole = held.slot(0).clone()
    lone = make_rule(rule, size, Hyper())
    for version in (1, 2, 3):
        held.apply([(0, 1.0), (1, 3.0)], lr=0.1, into=0)
        mean = grads[0] / 4 + grads[1] * 3 / 4
        lone.update([(whole, whole, mean, slice(0, size))], 0.1, version)
    torch.testing.assert_close(held.slot(0), whole, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("rule", sorted(RULES.keys() - LAYERWISE))
def test_shards_together_are_the_whole(rule: str) -> None:
    size = 101
    grad = torch.linspace(-2, 2, size)
    whole = table(size, grad, rule=rule)
    start = whole.slot(0).clone()
    parts = [
        Table(start[a:b].clone()[None], grad[None, a:b], make_rule(rule, b - a, Hyper()))
        for a, b in cut(size, 3)
    ]
    for _ in range(5):
        for one in (whole, *parts):
            one.apply([(0, 2.0)], lr=0.1, into=0)
    together = torch.cat([part.slot(0) for part in parts])
    torch.testing.assert_close(together, whole.slot(0), rtol=1e-6, atol=1e-6)
