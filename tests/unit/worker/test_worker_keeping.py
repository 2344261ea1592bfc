"""What a worker keeps is what it was: parameters, state, buffers of any type, random numbers."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from paceline.errors import TaskError
from paceline.exchange.base import Among, Copied, Gradient, Post
from paceline.exchange.local import Local
from paceline.exchange.replica import Replica
from paceline.server.rules import Hyper
from paceline.store.parts import Arrays, Seal, read_part, write_part
from paceline.transport.control import Control, pair
from paceline.transport.slate import Slate
from paceline.worker import writing
from paceline.worker.keeping import Keeper, Position, restore


class Odd(nn.Module):
    """Has buffers of all sorts."""

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.layer = nn.Linear(3, width)
        self.norm = nn.BatchNorm1d(width)
        self.register_buffer("halves", torch.randn(2, 3).bfloat16())
        self.register_buffer("mask", torch.rand(5) > 0.5)
        self.register_buffer("none", torch.empty(0))
        self.register_buffer("turned", torch.randn(2, 3).t(), persistent=False)


def started(rule: str, width: int = 4) -> tuple[Replica, Local]:
    replica = Replica(Odd(width))
    exchange = Local(Post(index=0, workers=1, rule=rule, hyper=Hyper()))
    exchange.start(replica)
    return replica, exchange


def step(replica: Replica, exchange: Local) -> None:
    replica.model.norm(replica.model.layer(torch.randn(8, 3))).square().mean().backward()
    exchange.step(Gradient(8, 8, 0.1, stopping=False), lambda: 0.0)


def draw() -> list[Any]:
    """A few numbers of every generator, normal ones too, which some make in pairs."""
    numbers = [random.random(), random.gauss(0, 1), float(np.random.rand())]
    return [*numbers, float(np.random.randn()), torch.randn(2).tolist()]


def keep(replica: Replica, exchange: Local, path: Path, position: Position) -> dict[str, Any]:
    here, there = map(Control, pair())
    keeper = Keeper(there, replica, exchange, every=5.0, slate=Slate())
    keeper.keep({"number": 7, "path": str(path), "place": 0, "of": 1}, position)
    keeper.close()
    (said,) = here.poll()
    here.close()
    there.close()
    return said


@pytest.mark.parametrize("rule", ["sgd", "momentum", "adam", "lamb"])
def test_a_restored_worker_does_what_the_other_would_have_done(rule: str, tmp_path: Path) -> None:
    replica, exchange = started(rule)
    for _ in range(3):
        step(replica, exchange)
    draw()
    path, position = tmp_path / "w.part", Position(round=3, taken=3, samples=24, epoch=1)
    said = keep(replica, exchange, path, position)
    assert (said["kind"], said["number"], said["step"], said["epoch"]) == ("kept", 7, 3, 1)

    def go_on(replica: Replica, exchange: Local) -> tuple[list[Any], dict[str, torch.Tensor]]:
        drawn = draw()
        for _ in range(3):
            step(replica, exchange)
        buffers = dict(replica.model.named_buffers())
        return drawn, {"flat": replica.flat.clone(), **buffers}

    drawn, state = go_on(replica, exchange)
    torch.manual_seed(99)
    other, another = started(rule)
    assert restore({"path": str(path), **said}, other, another) == position
    assert (another.round, another.taken) == (3, 3)
    drawn_again, state_again = go_on(other, another)
    assert drawn_again == drawn
    assert state_again.keys() == state.keys()
    for name, value in state.items():
        assert torch.equal(state_again[name], value), name


def test_what_is_written_is_what_was_when_it_was_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Training goes on while it is written."""
    replica, exchange = started("adam")
    step(replica, exchange)
    before = replica.flat.clone()
    from paceline.worker import writing

    write: Callable[..., Any] = writing.write_part

    def late(*given: Any) -> Any:
        step(replica, exchange)
        return write(*given)

    monkeypatch.setattr(writing, "write_part", late)
    said = keep(replica, exchange, tmp_path / "w.part", Position())
    other, another = started("adam")
    restore({"path": str(tmp_path / "w.part"), **said}, other, another)
    assert torch.equal(other.flat, before)
    assert not torch.equal(replica.flat, before)


def test_a_disk_that_refuses_is_told(tmp_path: Path) -> None:
    replica, exchange = started("sgd")
    said = keep(replica, exchange, tmp_path / "nowhere" / "w.part", Position())
    assert said["kind"] == "unkept"
    assert "cannot write" in said["why"]


def test_another_model_is_refused(tmp_path: Path) -> None:
    replica, exchange = started("sgd")
    said = keep(replica, exchange, tmp_path / "w.part", Position())
    with pytest.raises(
        TaskError, match=r"parameters where the model has .* the task has changed since"
    ):
        restore({"path": str(tmp_path / "w.part"), **said}, *started("sgd", width=5))
    other, another = started("sgd")
    other.model.register_buffer("more", torch.zeros(3))
    with pytest.raises(TaskError, match="other buffers: the task has changed since"):
        restore({"path": str(tmp_path / "w.part"), **said}, other, another)


def test_what_a_slow_disk_still_takes_is_not_written_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Copies use the same memory again, but not while it is being written."""
    goes_on = threading.Event()

    def slowly(path: Path, values: Mapping[str, Any], arrays: Arrays) -> Seal:
        assert goes_on.wait(20)
        return write_part(path, values, arrays)

    monkeypatch.setattr(writing, "write_part", slowly)
    monkeypatch.setattr(writing, "WRITING_SECONDS", 0.05)
    replica, exchange = started("sgd")
    before = replica.flat.clone()
    here, there = map(Control, pair())
    keeper = Keeper(there, replica, exchange, every=5.0, slate=Slate())
    asked = [
        {"number": n, "path": str(tmp_path / f"{n}.part"), "place": 0, "of": 1} for n in (1, 2)
    ]
    keeper.keep(asked[0], Position())
    step(replica, exchange)
    keeper.keep(asked[1], Position())
    refused = here.wait("unkept", seconds=5)
    assert (refused["number"], "the disk" in refused["why"]) == (2, True)
    goes_on.set()
    kept = here.wait("kept", seconds=5)
    seal = Seal(bytes=kept["bytes"], digest=kept["digest"])
    _, arrays = read_part(tmp_path / "1.part", seal)
    assert torch.equal(torch.from_numpy(arrays["exchange.parameters"]), before)
    here.close()
    there.close()


class Noted(Local):
    """Knows where copies were made."""

    def keep(self, among: Among, copied: Copied) -> dict[str, torch.Tensor]:
        kept = super().keep(among, copied)
        self.places = [kept[name].data_ptr() for name in ("parameters", "state")]
        return kept


@pytest.mark.parametrize(("every", "prepared"), [(5.0, True), (60.0, False), (0.0, False)])
def test_memory_is_there_before_the_first_checkpoint(
    every: float, prepared: bool, tmp_path: Path
) -> None:
    replica, exchange = Replica(Odd()), Noted(Post(index=0, workers=1, rule="adam", hyper=Hyper()))
    exchange.start(replica)
    exchange.places = []
    here, there = map(Control, pair())
    keeper = Keeper(there, replica, exchange, every=every, slate=Slate())
    keeper.prepare(Among(0, 1))
    assert here.poll() == []  # nobody has asked for one
    before = exchange.places
    assert bool(before) == prepared
    keeper.keep({"number": 1, "path": str(tmp_path / "w.part"), "place": 0, "of": 1}, Position())
    keeper.close()
    assert (exchange.places == before) == prepared
    here.close()
    there.close()
