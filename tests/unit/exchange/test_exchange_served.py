"""A worker's end of the servers over TCP, against real servers in threads."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

import pytest
import torch
from torch import nn

from paceline.exchange.base import Gradient, Post
from paceline.exchange.gates import make_gate
from paceline.exchange.replica import Replica
from paceline.exchange.served import Served
from paceline.server.rules import Hyper, make_rule
from paceline.server.serve import Desk, Tally, serve
from paceline.server.shards import cut
from paceline.server.table import Table
from paceline.transport.sockets import listen

pytestmark = pytest.mark.timeout(30)

SECRET = b"s" * 32
SIZE = 7


class Row(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.row = nn.Parameter(torch.zeros(SIZE))


class Servers:
    """Some servers for workers that push in step or at once."""

    def __init__(self, gate: str, workers: int, servers: int) -> None:
        self.gate, self.workers = gate, workers
        self.shards = tuple(cut(SIZE, servers))
        self.tables: list[Table] = []
        self.addresses: list[str] = []
        self._over = threading.Event()
        self._wake, self._poke = os.pipe()
        self._threads = [self._start(*shard) for shard in self.shards]

    def _start(self, start: int, stop: int) -> threading.Thread:
        gate, tally = make_gate(self.gate, self.workers), Tally()
        rule = make_rule("sgd", stop - start, Hyper())
        grads = torch.empty(self.workers, stop - start)
        table = Table(torch.empty(gate.places, stop - start), grads, rule)
        desk = Desk(table, gate, grads, tally)
        listener, address = listen("127.0.0.1:0")
        self.tables.append(table)
        self.addresses.append(address)
        thread = threading.Thread(
            target=serve,
            args=(listener, desk, SECRET, tally, self._over.is_set, self._wake, 0.02),
            daemon=True,
        )
        thread.start()
        return thread

    def worker(self, index: int) -> tuple[Served, Replica]:
        post = Post(
            index=index,
            workers=self.workers,
            rule="sgd",
            hyper=Hyper(),
            secret=SECRET,
            shards=self.shards,
            addresses=tuple(self.addresses),
        )
        exchange, replica = Served(post), Replica(Row())
        exchange.start(replica)
        return exchange, replica

    def end(self) -> None:
        assert all(thread.is_alive() for thread in self._threads)
        self._over.set()
        os.write(self._poke, b"x")
        for thread in self._threads:
            thread.join(5)
        os.close(self._wake)
        os.close(self._poke)


@pytest.fixture(params=[1, 2, 3])
def at_once(request: pytest.FixtureRequest) -> Iterator[Servers]:
    some = Servers("at-once", 2, request.param)
    yield some
    some.end()


def step(exchange: Served, replica: Replica, value: float = -1.0, weight: int = 1) -> int:
    if weight:
        replica.parameters[0].grad = torch.full((SIZE,), value)
    return exchange.step(Gradient(weight, weight, 1.0, False), lambda: 0.0).staleness


def test_parameters_arrive_in_the_replica(at_once: Servers) -> None:
    one, first = at_once.worker(0)
    two, second = at_once.worker(1)
    step(one, first)
    assert torch.equal(first.flat, torch.ones(SIZE))
    assert torch.equal(second.flat, torch.zeros(SIZE))
    assert step(two, second) == 1
    assert torch.equal(second.flat, torch.full((SIZE,), 2.0))
    one.finish()
    two.finish()
    one.close()
    assert torch.equal(first.flat, torch.full((SIZE,), 2.0))


def test_each_server_is_told_its_own_version() -> None:
    """Servers apply at their own pace: one may be ahead of another by what is on its way."""
    some = Servers("at-once", 2, 2)
    exchange, replica = some.worker(0)
    some.tables[1].version += 5  # five pushes of others have reached this one only
    assert step(exchange, replica) == 5
    assert step(exchange, replica) == 0
    assert step(exchange, replica) == 0
    some.end()


def test_a_worker_without_samples_takes_the_round() -> None:
    some = Servers("all", 2, 2)
    (one, first), (two, second) = some.worker(0), some.worker(1)
    thread = threading.Thread(target=step, args=(one, first, -3.0))
    thread.start()
    step(two, second, weight=0)
    thread.join(5)
    assert torch.equal(second.flat, torch.full((SIZE,), 3.0))
    assert torch.equal(first.flat, second.flat)
    some.end()


def test_traffic_is_counted_both_ways(at_once: Servers) -> None:
    exchange, replica = at_once.worker(0)
    sent, received = exchange.sent, exchange.received
    step(exchange, replica)
    servers = len(at_once.shards)
    assert exchange.sent - sent == exchange.received - received == SIZE * 4 + 56 * servers
