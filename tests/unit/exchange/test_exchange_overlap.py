"""Blocks that leave during backward: bit for bit the result of sending all of it afterwards."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
import torch
from served_tools import at_the_same_time, servers, step
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from paceline.errors import TaskError
from paceline.exchange.base import Gradient
from paceline.exchange.replica import Replica
from paceline.exchange.served import Served

pytestmark = pytest.mark.timeout(60)

WORKERS, STEPS = 2, 4


class Net(nn.Module):
    """Layers of all sizes, one of them used by every second batch, and one that is empty."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first = nn.Linear(6, 11)
        self.none = nn.Parameter(torch.zeros(0, 3))
        self.sometimes = nn.Linear(11, 11)
        self.tied = nn.Linear(11, 11, bias=False)
        self.scale = nn.Parameter(torch.tensor(0.7))
        self.last = nn.Linear(11, 1)

    def forward(self, x: Tensor, detour: bool) -> Tensor:
        x = torch.tanh(self.first(x)) * self.scale
        if detour:
            x = torch.tanh(self.sometimes(x))
        return self.last(self.tied(torch.tanh(self.tied(x))))


SIZE = sum(p.numel() for p in Net().parameters())


def batch(worker: int, turn: int) -> Callable[[nn.Module], Tensor] | None:
    """What a worker does in its turn: a layer is left out, and once there is no batch at all."""
    if (worker, turn) == (1, 2):
        return None
    x = torch.randn(5, 6, generator=torch.Generator().manual_seed(10 * turn + worker))
    return lambda net: net(x, turn % 2 == 0).square().mean()


def train(
    count: int, block: int, *, large: int, expect: bool, codec: str = "none", rule: str = "sgd"
) -> Tensor:
    """The final parameters of workers in step."""
    with servers("all", WORKERS, count, size=SIZE, block=block, codec=codec, rule=rule) as some:
        met = [some.worker(index, Net(), large) for index in range(WORKERS)]

        def work(index: int) -> None:
            exchange, replica = met[index]
            for turn in range(STEPS):
                task = batch(index, turn)
                loss = None if task is None else lambda task=task: task(replica.model)
                step(exchange, loss, weight=1 + index, expect=expect)
            exchange.finish()

        at_the_same_time(*(lambda index=index: work(index) for index in range(WORKERS)))
        for exchange, _ in met:
            exchange.close()
        (_, first), (_, second) = met
        assert torch.equal(first.flat, second.flat)
        assert first.flat.isfinite().all()
        return first.flat.clone()


@pytest.mark.parametrize("block", [7, 64, 1000])
@pytest.mark.parametrize("count", [1, 3])
def test_overlap_changes_nothing_in_the_result(count: int, block: int) -> None:
    plain = train(count, block, large=10**9, expect=False)
    assert not torch.equal(plain, torch.cat([p.detach().reshape(-1) for p in Net().parameters()]))
    assert torch.equal(train(count, block, large=1, expect=False), plain)
    assert torch.equal(train(count, block, large=1, expect=True), plain)


@pytest.mark.parametrize("rule", ["momentum", "adam"])
def test_nor_with_rules_that_have_a_state(rule: str) -> None:
    plain = train(2, 50, large=10**9, expect=False, rule=rule)
    assert torch.equal(train(2, 50, large=1, expect=True, rule=rule), plain)


@pytest.mark.parametrize("codec", ["bf16", "int8", "topk:0.2", "onebit"])
def test_nor_with_gradients_made_smaller(codec: str) -> None:
    plain = train(2, 50, large=10**9, expect=False, codec=codec)
    assert torch.equal(train(2, 50, large=1, expect=True, codec=codec), plain)


def test_nor_in_how_blocks_and_servers_cut_the_model() -> None:
    """A rule that takes each parameter by itself sees no borders."""
    whole = train(1, SIZE, large=10**9, expect=False)
    assert torch.equal(train(3, 13, large=1, expect=True), whole)


def test_blocks_leave_before_backward_is_over() -> None:
    """The server has the last layers before the first are made."""
    with servers("at-once", 1, 1, size=SIZE, block=10) as some:
        exchange, replica = some.worker(0, Net(), large=1)
        arrived = threading.Event()
        last = some.desks[0].windows[-1]

        def look(_: Tensor) -> None:
            for _ in range(500):
                if last.table.version:
                    arrived.set()
                    return
                threading.Event().wait(0.01)

        replica.model.first.weight.register_hook(look)
        x = torch.ones(2, 6)
        step(exchange, lambda: replica.model(x, True).sum())
        assert arrived.is_set()


def test_a_backward_that_nobody_expects_sends_nothing() -> None:
    """As an evaluation with gradients would."""
    with servers("at-once", 1, 1, size=SIZE, block=10) as some:
        exchange, replica = some.worker(0, Net(), large=1)
        sent = exchange.sent
        replica.model(torch.ones(1, 6), True).sum().backward()
        assert exchange.sent == sent
        assert replica.model.first.weight.grad is not None


class Checkpointed(nn.Module):
    """One layer in two checkpoints."""

    def __init__(self, reentrant: bool) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self._reentrant = reentrant

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(2):
            x = checkpoint(self.layer, x, use_reentrant=self._reentrant)
        return x


@pytest.mark.parametrize("reentrant", [False, True])
def test_a_gradient_made_twice_is_whole_or_an_error(reentrant: bool) -> None:
    x = torch.ones(1, 4, requires_grad=True)
    with servers("at-once", 1, 1, size=20, block=10) as some:
        exchange, replica = some.worker(0, Checkpointed(reentrant), large=1)
        start = replica.flat.clone()
        plain = Checkpointed(False)
        Replica(plain).flat.copy_(start)
        plain(x).sum().backward()
        grads = torch.cat([p.grad.reshape(-1) for p in plain.parameters()])
        if reentrant:
            with pytest.raises(TaskError, match="use_reentrant=False"):
                step(exchange, lambda: replica.model(x).sum(), lr=1.0)
        else:
            step(exchange, lambda: replica.model(x).sum(), lr=1.0)
            torch.testing.assert_close(replica.flat, start - grads)


def versions_in(values: Tensor) -> int:
    return len(values.unique())


def test_two_workers_at_once_never_see_half_an_update() -> None:
    """Large blocks, changed by another while they are sent: each holds one version."""
    size, block, steps = 3 << 18, 1 << 18, 12

    class Row(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.row = nn.Parameter(torch.zeros(size))

    with servers("at-once", 2, 1, size=size, block=block) as some:
        met = [some.worker(index, Row(), large=1) for index in (0, 1)]

        def work(index: int) -> None:
            exchange: Served = met[index][0]
            replica = met[index][1]
            for _ in range(steps):
                replica.parameters[0].grad = torch.full((size,), -1.0)
                exchange.step(Gradient(1, 1, 1.0, False), lambda: 0.0)
                assert [versions_in(part) for part in replica.flat.split(block)] == [1, 1, 1]

        at_the_same_time(lambda: work(0), lambda: work(1))
        assert torch.equal(some.desks[0].params, torch.full((size,), 2.0 * steps))
