"""A worker's end of the servers over TCP, against real servers in threads."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
import torch
from served_tools import Servers, at_the_same_time, servers
from torch import nn

from paceline.exchange.base import Gradient, Outcome
from paceline.exchange.replica import Replica
from paceline.exchange.served import LARGE, Served
from paceline.transport.courier import Courier, Direct
from paceline.transport.frames import HEADER_BYTES

pytestmark = pytest.mark.timeout(60)

SIZE = 7


class Row(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.row = nn.Parameter(torch.zeros(SIZE))


@pytest.fixture(params=[1, 2, 3], ids=lambda count: f"{count} servers")
def count(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture(params=[LARGE, 1], ids=["direct", "courier"])
def large(request: pytest.FixtureRequest) -> int:
    """From how many parameters on a courier is used: never here, or always."""
    return int(request.param)


@pytest.fixture
def at_once(count: int) -> Iterator[Servers]:
    with servers("at-once", 2, count, size=SIZE, block=2) as some:
        yield some


def step(exchange: Served, replica: Replica, value: float = -1.0, weight: int = 1) -> Outcome:
    if weight:
        replica.parameters[0].grad = torch.full((SIZE,), value)
    return exchange.step(Gradient(weight, weight, 1.0, False), lambda: 0.0)


def test_a_courier_only_where_it_pays(at_once: Servers) -> None:
    assert isinstance(at_once.worker(0, Row())[0]._servers._mail, Direct)
    assert isinstance(at_once.worker(1, Row(), large=SIZE)[0]._servers._mail, Courier)


def test_parameters_arrive_in_the_replica(at_once: Servers, large: int) -> None:
    one, first = at_once.worker(0, Row(), large)
    two, second = at_once.worker(1, Row(), large)
    step(one, first)
    assert torch.equal(first.flat, torch.ones(SIZE))
    assert torch.equal(second.flat, torch.zeros(SIZE))
    assert step(two, second).staleness == 1
    assert torch.equal(second.flat, torch.full((SIZE,), 2.0))
    one.finish()
    two.finish()
    one.close()
    assert torch.equal(first.flat, torch.full((SIZE,), 2.0))
    assert torch.equal(first.parameters[0].data, first.flat)


def test_each_block_is_told_its_own_version(large: int) -> None:
    """Servers apply at their own pace: one may be ahead of another by what is on its way."""
    with servers("at-once", 2, 2, size=SIZE, block=2) as some:
        exchange, replica = some.worker(0, Row(), large)
        some.desks[1].windows[1].table.version += 5  # pushes of others have reached this one only
        taken = [step(exchange, replica).staleness for _ in range(3)]
    assert taken == [5, 0, 0]


def test_a_worker_without_samples_takes_the_round(large: int) -> None:
    with servers("all", 2, 2, size=SIZE, block=2) as some:
        (one, first), (two, second) = (some.worker(w, Row(), large) for w in (0, 1))
        at_the_same_time(lambda: step(one, first, -3.0), lambda: step(two, second, weight=0))
    assert torch.equal(second.flat, torch.full((SIZE,), 3.0))
    assert torch.equal(first.flat, second.flat)


def test_traffic_is_counted_both_ways(at_once: Servers, large: int) -> None:
    exchange, replica = at_once.worker(0, Row(), large)
    sent, received = exchange.sent, exchange.received
    step(exchange, replica)
    frames = sum(-(-(stop - start) // 2) for start, stop in at_once.shards)
    size = SIZE * 4 + HEADER_BYTES * frames
    assert (exchange.sent - sent, exchange.received - received) == (size, size)


def test_traffic_is_counted_by_server_and_goes_on_after_a_line_was_lost(
    at_once: Servers, large: int
) -> None:
    exchange, replica = at_once.worker(0, Row(), large)
    before = {told.peer: told for told in exchange.traffic()}
    step(exchange, replica)
    exchange._servers.close()
    exchange._servers._connect(time.monotonic() + 5)
    step(exchange, replica)
    for server, (start, stop) in enumerate(at_once.shards):
        now, then = exchange.traffic()[server], before[f"server-{server}"]
        blocks = -(-(stop - start) // 2)
        size = 2 * ((stop - start) * 4 + HEADER_BYTES * blocks)
        assert (now.sent - then.sent, now.received - then.received) == (size, size)
        assert now.messages_sent is not None
        assert then.messages_sent is not None
        assert now.messages_sent - then.messages_sent == 2 * blocks
    assert exchange.sent == sum(told.sent for told in exchange.traffic())


def test_what_comes_late_is_dropped_and_said_to_be(large: int) -> None:
    with servers("all", 2, 2, size=SIZE, block=2, backup=1) as some:
        (one, first), (two, second) = (some.worker(w, Row(), large, backup=1) for w in (0, 1))
        assert not step(one, first).dropped
        assert not step(one, first).dropped
        late = step(two, second, -100.0)
        assert late.dropped
        assert (late.version, late.skipped) == (2, 1)
        assert torch.equal(second.flat, torch.full((SIZE,), 2.0))
        assert not step(two, second).dropped
        assert torch.equal(second.flat, torch.full((SIZE,), 3.0))


def test_nobody_waits_for_who_has_finished(large: int) -> None:
    with servers("all", 2, 2, size=SIZE, block=2) as some:
        (one, first), (two, second) = (some.worker(w, Row(), large) for w in (0, 1))
        at_the_same_time(lambda: step(one, first), lambda: step(two, second))
        at_the_same_time(lambda: step(one, first), two.finish)
        step(one, first)
        one.finish()
        at_the_same_time(one.close, two.close)
    assert torch.equal(first.flat, torch.full((SIZE,), 3.0))
    assert torch.equal(second.flat, first.flat)
