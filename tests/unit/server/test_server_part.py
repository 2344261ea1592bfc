"""A server's part of a checkpoint: whoever takes it up serves as if it had been there all along."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from paceline.errors import TaskError
from paceline.exchange.gates import make_gate
from paceline.server.catalog import STATES
from paceline.server.desk import Desk
from paceline.server.kept import Kept
from paceline.server.part import restore
from paceline.server.rules import Hyper, make_rule
from paceline.server.shards import Sizes, blocks
from paceline.server.tally import Tally
from paceline.transport.frames import KEEP, STOP, Frame, Kind
from paceline.transport.memory import raw

SIZE, BLOCK, WORKERS = 7, 4, 2
SPANS = blocks(SIZE, BLOCK)


class Line:
    """In place of a connection."""

    owed = 0
    closed = False

    def __init__(self) -> None:
        self.frames: list[Frame] = []

    def send(self, frame: Frame, payload: memoryview, *, steady: bool) -> None:
        self.frames.append(frame)

    @property
    def asked(self) -> int:
        """What the last answers of all blocks say."""
        told = [frame.asked for frame in self.frames[-len(SPANS) :]]
        assert len(set(told)) == 1
        return told[0]


class Server:
    """Without sockets; with memory that outlives it, or not."""

    def __init__(
        self, gate: str, rule: str = "adam", lasting: bool = False, size: int = SIZE
    ) -> None:
        kept = None
        if lasting:
            sizes = Sizes.of(size, BLOCK, STATES[rule], WORKERS)
            state = torch.zeros(2, sizes.states, size)
            words = memoryview(bytearray(8 * sizes.words)).cast("q")
            kept = Kept(torch.zeros(2, size), state, words)
        self.desk = Desk(
            size,
            WORKERS,
            lambda: make_gate(gate, WORKERS, bound=3, whole=10),
            lambda count: make_rule(rule, count, Hyper()),
            Tally(),
            block=BLOCK,
            kept=kept,
        )
        self.lines = [Line() for _ in range(WORKERS)]

    def begin(self) -> Server:
        for block, span in enumerate(SPANS):
            part = torch.zeros(span.stop - span.start)
            self._tell(0, Frame(Kind.INIT, 0, block=block, length=part.nbytes), part)
        return self

    def push(self, worker: int, sequence: int, asked: int = 0, only: int | None = None) -> None:
        """All blocks of a gradient, or one of them, computed from what stands."""
        for block, span in enumerate(SPANS):
            if only in (None, block):
                part = torch.full((span.stop - span.start,), 1.0 + worker + sequence)
                version = self.desk.windows[block].table.version
                about = {"block": block, "length": part.nbytes, "asked": asked}
                frame = Frame(Kind.PUSH, worker, sequence, version, 1.0, 0.1, **about)
                self._tell(worker, frame, part)

    def _tell(self, worker: int, frame: Frame, payload: Tensor) -> None:
        line = self.lines[worker]
        target = self.desk.target(line, frame)  # type: ignore[arg-type]
        assert target is not None
        target[:] = raw(payload)
        self.desk.handle(line, frame)  # type: ignore[arg-type]

    def held(self) -> Tensor:
        """Parameters and state of all blocks."""
        tables = [window.table for window in self.desk.windows]
        return torch.cat([torch.cat((t.held[0][None], t.held[1])) for t in tables], dim=1)


lasting = pytest.mark.parametrize("lasting", [False, True], ids=["", "lasting"])


@lasting
@pytest.mark.parametrize("rule", ["sgd", "momentum", "adam"])
def test_in_rounds_it_is_copied_after_the_one_in_which_all_ask(rule: str, lasting: bool) -> None:
    server = Server("all", rule, lasting).begin()
    server.push(0, 1)
    server.push(1, 1)
    copying = server.desk.keep()
    server.push(0, 2, KEEP)
    server.push(1, 2)
    assert not copying.whole
    assert not server.desk.tend()
    assert server.lines[0].asked == 0
    server.push(0, 3, KEEP)
    server.push(1, 3, KEEP)
    assert copying.whole
    assert copying.agree
    assert copying.version == 3
    assert [line.asked for line in server.lines] == [KEEP, KEEP]
    other = Server("all", rule, not lasting)
    restore(other.desk.windows, copying.arrays())
    assert torch.equal(other.held(), server.held())
    for each in (server, other):
        each.push(0, 3)  # said again: answered, and not applied
        assert each.desk.applied == 3
        each.push(0, 4)
        each.push(1, 4)
        assert each.lines[1].asked == 0
    assert torch.equal(other.held(), server.held())
    assert [f.end for f in other.lines[1].frames[-2:]] == [10, 10], "its share of the next round"


@lasting
@pytest.mark.parametrize("gate", ["at-once", "bounded"])
def test_without_rounds_a_block_a_turn_each_with_the_names_of_what_it_has(
    gate: str, lasting: bool
) -> None:
    server = Server(gate, "momentum", lasting).begin()
    server.push(0, 1)
    copying = server.desk.keep()
    assert server.desk.tend(), "there is another block"
    server.push(0, 2)
    server.push(1, 1)
    assert not server.desk.tend()
    assert copying.whole
    assert copying.agree
    other = Server(gate, "momentum", not lasting)
    restore(other.desk.windows, copying.arrays())
    assert [w.table.version for w in other.desk.windows] == [1, 3]
    other.push(0, 2)
    other.push(1, 1)
    assert [w.table.version for w in other.desk.windows] == [3, 3]
    assert torch.equal(other.held(), server.held())


def test_when_nobody_pushes_any_more_it_is_copied_as_it_stands() -> None:
    server = Server("all").begin()
    server.push(0, 1)
    server.push(1, 1)
    copying = server.desk.keep()
    copying.finish()
    assert copying.whole
    assert copying.version == 1


def test_a_round_is_kept_by_those_who_take_part() -> None:
    """Whoever has left is not counted on; after a death the supervisor gives up its wish."""
    server = Server("all").begin()
    server.desk.leave(1)
    copying = server.desk.keep()
    server.push(0, 1, KEEP)
    assert server.desk.applied == 1
    assert copying.whole


def test_all_end_after_the_same_round() -> None:
    server = Server("all").begin()
    server.push(0, 1)
    server.push(1, 1)
    assert [line.asked for line in server.lines] == [0, 0]
    server.push(0, 2)
    server.push(1, 2, STOP)
    assert [line.asked for line in server.lines] == [STOP, STOP]


def test_another_model_is_refused() -> None:
    copying = Server("all").begin().desk.keep()
    copying.finish()
    with pytest.raises(TaskError, match=r"7 parameters .* the model 8: the task has changed"):
        restore(Server("all", size=SIZE + 1).desk.windows, copying.arrays())
