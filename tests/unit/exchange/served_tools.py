"""Real servers in threads, and workers of them: what tests of the worker's end share."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from torch import Tensor, nn

from paceline.exchange.base import Gradient, Outcome, Post
from paceline.exchange.codecs.make import make_codec
from paceline.exchange.gates import make_gate
from paceline.exchange.replica import Replica
from paceline.exchange.served import LARGE, Served
from paceline.server.desk import Desk
from paceline.server.rules import Hyper, make_rule
from paceline.server.serve import serve
from paceline.server.shards import BLOCK, cut
from paceline.server.tally import Tally
from paceline.transport.sockets import listen

SECRET = b"s" * 32


class Servers:
    """Some servers of a model of `size` parameters, for workers of one strategy."""

    def __init__(
        self,
        gate: str,
        workers: int,
        servers: int,
        *,
        size: int,
        block: int = BLOCK,
        rule: str = "sgd",
        codec: str = "none",
        **options: int,
    ) -> None:
        self.gate, self.workers, self.options = gate, workers, options
        self.block, self.rule, self.codec = block, rule, codec
        self.shards = tuple(cut(size, servers))
        self.desks: list[Desk] = []
        self.addresses: list[str] = []
        self._over = threading.Event()
        self._wake, self._poke = os.pipe()
        self._threads = [self._start(*shard) for shard in self.shards]

    def _start(self, start: int, stop: int) -> threading.Thread:
        tally = Tally()
        desk = Desk(
            stop - start,
            self.workers,
            lambda: make_gate(self.gate, self.workers, **self.options),
            lambda size: make_rule(self.rule, size, Hyper()),
            tally,
            block=self.block,
            codec=None if self.codec == "none" else make_codec(self.codec),
        )
        listener, address = listen("127.0.0.1:0")
        self.desks.append(desk)
        self.addresses.append(address)
        thread = threading.Thread(
            target=serve,
            args=(listener, desk, SECRET, tally, self._over.is_set, self._wake, 0.02),
            daemon=True,
        )
        thread.start()
        return thread

    def worker(
        self, index: int, model: nn.Module, large: int = LARGE, backup: int = 0
    ) -> tuple[Served, Replica]:
        post = Post(
            index=index,
            workers=self.workers,
            rule=self.rule,
            hyper=Hyper(),
            secret=SECRET,
            shards=self.shards,
            block=self.block,
            addresses=tuple(self.addresses),
            codec=self.codec,
            backup=backup,
        )
        exchange, replica = Served(post, self.gate == "all", large), Replica(model)
        exchange.start(replica)
        return exchange, replica

    def end(self) -> None:
        alive = all(thread.is_alive() for thread in self._threads)
        self._over.set()
        os.write(self._poke, b"x")
        for thread in self._threads:
            thread.join(5)
        os.close(self._wake)
        os.close(self._poke)
        assert alive, "a server did not survive"


@contextmanager
def servers(gate: str, workers: int, count: int, **options: int | str) -> Iterator[Servers]:
    some = Servers(gate, workers, count, **options)  # type: ignore[arg-type]
    try:
        yield some
    finally:
        some.end()


def at_the_same_time(*acts: Callable[[], object]) -> None:
    """Each in a thread of its own, as workers are; what one of them raises is raised here."""
    wrong: list[BaseException] = []

    def guarded(act: Callable[[], object]) -> None:
        try:
            act()
        except BaseException as one:  # noqa: BLE001 - raised below, where the test sees it
            wrong.append(one)

    threads = [threading.Thread(target=guarded, args=(act,), daemon=True) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    if wrong:
        raise wrong[0]
    assert not any(thread.is_alive() for thread in threads), "still waiting"


def step(
    exchange: Served,
    loss: Callable[[], Tensor] | None,
    *,
    weight: int = 1,
    lr: float = 0.1,
    expect: bool = True,
) -> Outcome:
    """One step as a worker takes it; no loss is a batch without samples."""
    gradient = Gradient(weight if loss else 0, weight, lr, False)
    if expect:
        exchange.expect(gradient)
    if loss is not None:
        loss().backward()  # type: ignore[no-untyped-call]
    return exchange.step(gradient, lambda: 0.0)
