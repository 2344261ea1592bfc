"""A worker dies at any line of a push over shared memory: every chunk gets every gradient once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from ctypes import memmove, string_at
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from paceline.exchange.base import Gradient, Post
from paceline.exchange.layout import layout
from paceline.exchange.replica import Replica
from paceline.exchange.shared_async import SharedAsync
from paceline.kernels.load import kernels
from paceline.server import elementwise
from paceline.server.descent import Descent
from paceline.server.rules import Hyper
from paceline.server.shards import cut
from paceline.spec import RunSpec
from paceline.transport import memory
from paceline.transport.board import size_board

SIZE, WORKERS, CHUNK = 13, 2, 3


class Dead(BaseException):
    """What a worker does not survive."""


class Row(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.row = nn.Parameter(torch.zeros(SIZE))


class Fate:
    """Counts what a worker does to shared memory, and ends it at a chosen count."""

    def __init__(self) -> None:
        self.left: int | None = None

    def strikes(self) -> bool:
        if self.left is None:
            return False
        self.left -= 1
        return self.left < 0


class Words:
    """A board's words as one worker writes them."""

    def __init__(self, words: memoryview, fate: Fate) -> None:
        self._words = words
        self._fate = fate

    def __getitem__(self, at: int) -> int:
        return int(self._words[at])

    def __setitem__(self, at: int, value: int) -> None:
        if self._fate.strikes():
            raise Dead
        self._words[at] = value


class World:
    """Two workers' memory, and their lives, all in this process."""

    def __init__(self, rule: str, shards: int, compiled: bool = False) -> None:
        spec = RunSpec(strategy="ps-async", workers=WORKERS, optimizer=rule)
        need = layout(spec, SIZE, shards, 1)
        self._board = memory.new_segment("test")
        size_board(self._board, need.board)
        self._post = Post(
            index=0,
            workers=WORKERS,
            rule=rule,
            hyper=Hyper(),
            shards=tuple(cut(SIZE, shards)),
            board=self._board,
            params=torch.zeros(need.params, SIZE),
            state=torch.zeros(need.state, SIZE) if need.state else None,
            journal=torch.zeros(need.journal),
            kernels=kernels(True) if compiled else None,
        )
        self.fate = Fate()
        self.lives = [0] * WORKERS
        self.pushed = [0] * WORKERS
        self._exchanges: list[SharedAsync] = []
        self._replicas: list[Replica] = []
        for worker in range(WORKERS):
            self._exchanges.append(None)  # type: ignore[arg-type]
            self._replicas.append(None)  # type: ignore[arg-type]
            self._live(worker)

    def _live(self, worker: int) -> None:
        post = replace(self._post, index=worker, life=self.lives[worker])
        exchange, replica = SharedAsync(post), Replica(Row())
        exchange.start(replica)
        words = Words(exchange._log._words, self.fate)
        exchange._log._words = exchange._log._journal._words = words  # type: ignore[assignment]
        step = exchange._rule.step

        def mortal(new: Tensor, old: Tensor, grad: Tensor, at: slice, lr: float, t: int) -> None:
            if not self.fate.strikes():
                step(new, old, grad, at, lr, t)
                return
            before = new.clone()
            step(new, old, grad, at, lr, t)
            new[len(new) // 2 :] = before[len(new) // 2 :]  # half of it
            raise Dead

        exchange._rule.step = mortal  # type: ignore[method-assign]
        if exchange._descent is not None:  # compiled loops, which do not ask the rule
            self._make_mortal(exchange._descent)
        self._exchanges[worker], self._replicas[worker] = exchange, replica

    def _make_mortal(self, by: Descent) -> None:
        step = by.step

        def mortal(new: int, old: int, grad: int, lr: float, count: int) -> None:
            before, struck = string_at(new, 4 * count), self.fate.strikes()
            step(new, old, grad, lr, count)
            if struck:
                half = 4 * (count // 2)
                memmove(new + half, before[half:], len(before) - half)
                raise Dead

        by.step = mortal  # type: ignore[method-assign]

    def push(self, worker: int, dies_after: int | None = None) -> bool:
        """Whether it lived."""
        self.fate.left = dies_after
        self._replicas[worker].parameters[0].grad = torch.full((SIZE,), -1.0)
        try:
            self._exchanges[worker].step(Gradient(1, 1, 1.0, False), lambda: 0.0)
        except Dead:
            return False
        finally:
            self.fate.left = None
        self.pushed[worker] += 1
        return True

    def bring_back(self, worker: int) -> None:
        """Another life; it takes up where the last one's pushes end."""
        self.lives[worker] += 1
        self._live(worker)
        self.pushed[worker] = self._exchanges[worker].taken

    def parameters(self) -> Tensor:
        self._exchanges[0].close()
        return self._replicas[0].flat.clone()

    def close(self) -> None:
        os.close(self._board)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., World]]:
    monkeypatch.setattr(elementwise, "CHUNK", CHUNK)
    made: list[World] = []

    def make(*how: Any) -> World:
        made.append(World(*how))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.mark.parametrize(
    ("rule", "compiled"),
    [("sgd", False), ("sgd", True), ("momentum", False), ("adam", False)],
    ids=["sgd", "compiled", "momentum", "adam"],
)
@pytest.mark.parametrize("shards", [1, 2])
def test_a_death_at_every_line(
    rule: str, compiled: bool, shards: int, world: Callable[..., World]
) -> None:
    """In place and to another's version: the step is taken again, and it is as if nobody died."""
    for before in ([], [0], [1], [1, 0], [0, 0]):  # whose version stands when worker 0 pushes
        calm = world(rule, shards, compiled)
        for worker in (*before, 0, 1):
            calm.push(worker)
        for line in range(100):
            struck = world(rule, shards, compiled)
            for worker in before:
                struck.push(worker)
            if struck.push(0, dies_after=line):
                break
            struck.bring_back(0)
            if struck.pushed[0] == before.count(0):
                struck.push(0)
            struck.push(1)
            assert struck.pushed == [before.count(0) + 1, before.count(1) + 1]
            torch.testing.assert_close(struck.parameters(), calm.parameters(), rtol=0, atol=0)
        assert line > 5


@settings(deadline=None, max_examples=60)
@given(data=st.data(), shards=st.integers(1, 3))
def test_others_push_before_it_is_back_and_it_may_die_again(
    data: st.DataObject, shards: int
) -> None:
    chunk, elementwise.CHUNK = elementwise.CHUNK, CHUNK
    world = World("sgd", shards)
    try:
        dead: set[int] = set()
        for _ in range(data.draw(st.integers(1, 12))):
            worker = data.draw(st.integers(0, WORKERS - 1))
            if worker in dead:
                world.bring_back(worker)
                dead.discard(worker)
                continue
            line = data.draw(st.one_of(st.none(), st.integers(0, 30)))
            before = world.pushed[worker]
            if not world.push(worker, dies_after=line):
                dead.add(worker)
                world.pushed[worker] = before
        for worker in range(WORKERS):  # whoever is dead comes back; then each pushes once more
            world.bring_back(worker)
            world.push(worker)
        due = torch.full((SIZE,), float(sum(world.pushed)))
        torch.testing.assert_close(world.parameters(), due)
    finally:
        world.close()
        elementwise.CHUNK = chunk
