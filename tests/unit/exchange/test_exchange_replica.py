"""The flat replica: layers really are views of it, whatever the model looks like."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from paceline.errors import TaskError
from paceline.exchange.replica import Replica
from paceline.server.rules import CHUNK


def net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2))


def flat_of(model: nn.Module) -> Tensor:
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()])


def test_it_holds_what_the_model_held() -> None:
    model = net()
    before = flat_of(model)
    replica = Replica(model)
    assert replica.size == 32
    assert torch.equal(replica.flat, before)
    assert torch.equal(flat_of(model), before)


def test_the_layers_are_views() -> None:
    model = net()
    replica = Replica(model)
    replica.flat.fill_(0.5)
    assert all((p == 0.5).all() for p in model.parameters())
    with torch.no_grad():
        model[2].bias.fill_(7.0)
    assert torch.equal(replica.flat[-2:], torch.tensor([7.0, 7.0]))


def test_bound_elsewhere_the_layers_live_there() -> None:
    model = net()
    replica = Replica(model)
    old, new = replica.flat, torch.full((32,), 2.0)
    replica.bind(new)
    assert all((p == 2.0).all() for p in model.parameters())
    old.fill_(9.0)
    assert all((p == 2.0).all() for p in model.parameters())
    new.zero_()
    assert torch.equal(model(torch.ones(1, 3)), torch.zeros(1, 2))


def test_parameters_stay_the_same_objects() -> None:
    """An optimizer that was made before goes on working."""
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    replica = Replica(model)
    model(torch.ones(1, 3)).sum().backward()
    before = replica.flat.clone()
    optimizer.step()
    assert not torch.equal(replica.flat, before)


def test_gather_is_the_gradient_and_lets_go_of_it() -> None:
    model = net()
    replica = Replica(model)
    model(torch.randn(4, 3)).sum().backward()
    expected = torch.cat([p.grad.reshape(-1) for p in model.parameters()])
    out = torch.full((32,), torch.nan)
    replica.gather(out)
    assert torch.equal(out, expected)
    assert all(p.grad is None for p in model.parameters())


@pytest.mark.parametrize("scale", [1.0, 0.25])
def test_a_layer_without_a_gradient_counts_as_zero(scale: float) -> None:
    model = net()
    replica = Replica(model)
    out = torch.full((32,), torch.nan)
    model[0](torch.ones(1, 3)).sum().backward()
    replica.gather(out, scale)
    assert torch.equal(out[:15], torch.full((15,), scale))
    assert torch.equal(out[20:], torch.zeros(12))


def test_gather_into_another_buffer_later() -> None:
    model = net()
    replica = Replica(model)
    for _ in range(2):
        for out in (torch.zeros(32), torch.zeros(32)):
            model[2](torch.ones(1, 5)).sum().backward()
            replica.gather(out, 3.0)
            assert torch.equal(out[20:], torch.full((12,), 3.0))


def test_gradients_of_another_layout_arrive_in_order() -> None:
    model = nn.Linear(3, 2, bias=False)
    replica = Replica(model)
    values = torch.arange(6.0).view(3, 2)
    model.weight.grad = values.t()  # not contiguous
    assert torch.equal(replica.flat_gradients()[0], values.t().reshape(-1))
    for scale in (1.0, 2.0):
        model.weight.grad = values.t()
        out = torch.zeros(6)
        replica.gather(out, scale)
        assert torch.equal(out, values.t().reshape(-1) * scale)


def test_convolutions_in_channels_last() -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 3, 8, 8)
    plain = nn.Conv2d(3, 4, 3)
    last = nn.Conv2d(3, 4, 3)
    last.load_state_dict(plain.state_dict())
    last = last.to(memory_format=torch.channels_last)
    grads = []
    for model, image in ((plain, x), (last, x.to(memory_format=torch.channels_last))):
        replica = Replica(model)
        assert torch.equal(replica.flat, flat_of(model))
        model(image).square().sum().backward()
        out = torch.zeros(replica.size)
        replica.gather(out)
        grads.append(out)
    torch.testing.assert_close(grads[0], grads[1], rtol=1e-4, atol=1e-4)


def test_tied_parameters_are_one() -> None:
    model = nn.Sequential(nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False))
    model[1].weight = model[0].weight
    replica = Replica(model)
    assert replica.size == 16
    assert model[0].weight is model[1].weight
    replica.flat.fill_(1.0)
    assert torch.equal(model(torch.ones(1, 4)), torch.full((1, 4), 16.0))
    model(torch.ones(1, 4)).sum().backward()
    out = torch.zeros(16)
    replica.gather(out)
    assert torch.equal(out, torch.full((16,), 8.0))  # both uses count


def test_what_is_frozen_is_left_out() -> None:
    model = net()
    for p in model[0].parameters():
        p.requires_grad_(False)
    replica = Replica(model)
    assert replica.size == 12
    model(torch.ones(1, 3)).sum().backward()
    out = torch.zeros(12)
    replica.gather(out)
    assert torch.equal(out[-2:], torch.ones(2))


def test_scalars_and_empty_parameters_have_their_place() -> None:
    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scalar = nn.Parameter(torch.tensor(3.0))
            self.none = nn.Parameter(torch.zeros(0, 4))
            self.row = nn.Parameter(torch.tensor([1.0, 2.0]))

    model = Odd()
    replica = Replica(model)
    assert torch.equal(replica.flat, torch.tensor([3.0, 1.0, 2.0]))
    (model.scalar * model.row.sum() + model.none.sum()).backward()
    out = torch.zeros(3)
    replica.gather(out)
    assert torch.equal(out, torch.tensor([3.0, 3.0, 3.0]))


def test_scatter_gives_each_layer_its_part() -> None:
    model = net()
    replica = Replica(model)
    replica.scatter(torch.arange(32.0))
    assert torch.equal(model[0].weight.grad, torch.arange(15.0).view(5, 3))
    assert torch.equal(model[2].bias.grad, torch.tensor([30.0, 31.0]))
    replica.clear()
    assert model[2].bias.grad is None


@pytest.mark.parametrize(("start", "stop"), [(0, 32), (0, 15), (3, 17), (31, 32), (5, 5)])
def test_pieces_cover_a_range_and_cross_no_border(start: int, stop: int) -> None:
    replica = Replica(net())
    borders = [0, 15, 20, 30, 32]
    covered = []
    for piece in replica.pieces(start, stop):
        first, last = borders[piece.parameter], borders[piece.parameter + 1]
        assert first <= piece.at.start < piece.at.stop <= last
        places = torch.arange(first, last)  # in place of the parameter's gradient
        assert piece.of(places).tolist() == list(range(piece.at.start, piece.at.stop))
        covered += range(piece.at.start, piece.at.stop)
    assert covered == list(range(start, stop))


def test_pieces_of_a_large_layer_fit_the_cache() -> None:
    replica = Replica(nn.Linear(CHUNK, 2, bias=False))
    pieces = replica.pieces(0, replica.size)
    assert len(pieces) == 2
    assert all(piece.at.stop - piece.at.start <= CHUNK for piece in pieces)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_other_kinds_of_numbers_are_refused(dtype: torch.dtype) -> None:
    with pytest.raises(TaskError, match=rf"{dtype!s} parameters.*float32.*model\.float\(\)"):
        Replica(net().to(dtype))


def test_nothing_to_train_is_refused() -> None:
    with pytest.raises(TaskError, match="no trainable parameters"):
        Replica(nn.Tanh())
