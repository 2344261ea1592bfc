"""A server dies at any line: its successor has every push that was answered, and none twice."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from paceline.errors import WireError
from paceline.exchange.gates import make_gate
from paceline.server.catalog import STATES
from paceline.server.desk import Desk
from paceline.server.kept import Kept
from paceline.server.rules import Hyper, make_rule
from paceline.server.shards import Sizes
from paceline.server.tally import Tally
from paceline.transport.frames import Frame, Kind
from paceline.transport.memory import raw

SIZE, BLOCK, WORKERS = 7, 4, 2
BLOCKS = 2


class Dead(BaseException):
    """What a server does not survive."""


class Words:
    """What a server writes down, until it dies over one of its words."""

    def __init__(self, count: int) -> None:
        self._words = [0] * count
        self.left: int | None = None

    def __getitem__(self, at: int) -> int:
        return self._words[at]

    def __setitem__(self, at: int, value: int) -> None:
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise Dead
        self._words[at] = value


class Line:
    """In place of a connection."""

    owed = 0
    closed = False

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self.values = torch.zeros(SIZE)

    def send(self, frame: Frame, payload: memoryview, *, steady: bool) -> None:
        self.frames.append(frame)
        part = torch.frombuffer(bytearray(payload), dtype=torch.float32)
        self.values[frame.block * BLOCK : frame.block * BLOCK + len(part)] = part

    def close(self) -> None:
        self.closed = True


class World:
    """One server's memory, and whoever serves from it."""

    def __init__(self, gate: str, rule: str, whole: int = 0) -> None:
        self._gate, self._rule, self._whole = gate, rule, whole
        sizes = Sizes.of(SIZE, BLOCK, STATES[rule], WORKERS)
        self.words = Words(sizes.words)
        self._kept = Kept(
            torch.zeros(2, SIZE),
            torch.zeros(2, sizes.states, SIZE),
            self.words,  # type: ignore[arg-type]
        )
        self.begin()
        for block in range(BLOCKS):
            part = torch.zeros(min(BLOCK, SIZE - block * BLOCK))
            self._tell(Line(), Frame(Kind.INIT, 0, block=block, length=part.nbytes), part)

    def begin(self) -> None:
        """A server, the first or the next."""
        self.words.left = None
        self.desk = Desk(
            SIZE,
            WORKERS,
            lambda: make_gate(
                self._gate, WORKERS, bound=3, whole=self._whole, balance=self._whole > 0
            ),
            lambda size: make_rule(self._rule, size, Hyper()),
            Tally(),
            block=BLOCK,
            kept=self._kept,
        )
        self.desk.meet([0] * WORKERS, [])
        self.lines = [Line() for _ in range(WORKERS)]

    def _tell(self, line: Line, frame: Frame, payload: Tensor | None = None) -> None:
        target = self.desk.target(line, frame)  # type: ignore[arg-type]
        if target is not None and payload is not None:
            target[:] = raw(payload)
        self.desk.handle(line, frame)  # type: ignore[arg-type]

    def push(self, worker: int, sequence: int, weight: float = 1.0, seconds: float = 0.0) -> None:
        """All blocks of a gradient, computed from what the worker was last told."""
        for block in range(BLOCKS):
            part = torch.full((min(BLOCK, SIZE - block * BLOCK),), -1.0)
            version = sequence - 1 if self._gate == "all" else 0
            name = worker, sequence, version
            sizes = {"block": block, "length": part.nbytes}
            frame = Frame(Kind.PUSH, *name, weight, 0.5, seconds=seconds, **sizes)
            self._tell(self.lines[worker], frame, part)

    def pull(self) -> Tensor:
        line = Line()
        self.desk.handle(line, Frame(Kind.PULL, 0))  # type: ignore[arg-type]
        return line.values

    @property
    def answered(self) -> dict[int, int]:
        """The last push of each worker's that every block has answered."""
        return {
            worker: min(
                max((f.sequence for f in line.frames if f.block == block), default=0)
                for block in range(BLOCKS)
            )
            for worker, line in enumerate(self.lines)
        }


def play(world: World, dies_after: int | None) -> bool:
    """Three pushes of each worker; whether the server lived through the third."""
    for sequence in (1, 2):
        for worker in range(WORKERS):
            world.push(worker, sequence)
    world.words.left = dies_after
    try:
        for worker in range(WORKERS):
            world.push(worker, 3)
    except Dead:
        return False
    world.words.left = None
    return True


@pytest.mark.parametrize("rule", ["sgd", "momentum", "adam"])
@pytest.mark.parametrize("gate", ["at-once", "all", "bounded"])
def test_a_death_at_every_line(gate: str, rule: str) -> None:
    calm = World(gate, rule)
    assert play(calm, None)
    for line in range(100):
        struck = World(gate, rule)
        if play(struck, dies_after=line):
            break
        answered = struck.answered
        struck.begin()
        held = {w: min(win.known_of(w) for win in struck.desk.windows) for w in range(WORKERS)}
        assert all(held[worker] >= answered[worker] for worker in range(WORKERS))
        for worker in range(WORKERS):  # they say again what they may have said in vain
            struck.push(worker, 3)
        torch.testing.assert_close(struck.pull(), calm.pull(), rtol=0, atol=0)
    assert line > 5


def test_a_server_that_dies_before_there_are_parameters_has_none() -> None:
    world = World("at-once", "sgd")
    fresh = World.__new__(World)
    fresh.__dict__ |= world.__dict__
    fresh.words = Words(Sizes.of(SIZE, BLOCK, 0, WORKERS).words)
    fresh._kept = fresh._kept._replace(words=fresh.words)  # type: ignore[arg-type]
    fresh.begin()
    assert not any(window.ready for window in fresh.desk.windows)


def test_a_successor_tells_the_shares_that_were_told() -> None:
    """Some were answered before the death, some are after it: together they have one batch."""
    world = World("all", "sgd", whole=90)
    for worker, seconds in enumerate((1.0, 2.0)):
        world.push(worker, 1, weight=45.0, seconds=seconds)
    world.begin()
    for window in world.desk.windows:
        assert [window.gate.share(worker) for worker in range(WORKERS)] == [(0, 60), (60, 90)]


def test_a_push_that_no_word_can_name_is_refused() -> None:
    """Else whoever knows the secret could end a server that writes down what it has."""
    world = World("at-once", "sgd")
    with pytest.raises(WireError, match=r"number 9223372036854775808, which nobody counts to"):
        world.push(0, 2**63)
    world.push(0, 2**63 - 1)
    assert world.answered[0] == 2**63 - 1
