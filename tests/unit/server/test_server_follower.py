"""A server and its standby: to the bit the same, and nothing answered that the standby has not."""

from __future__ import annotations

from array import array
from collections import deque
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from paceline.errors import WireError
from paceline.exchange.gates import make_gate
from paceline.server.catalog import STATES
from paceline.server.desk import Desk
from paceline.server.kept import Kept
from paceline.server.note import Note, note_bytes
from paceline.server.rules import Hyper, make_rule
from paceline.server.shadow import Shadow
from paceline.server.shards import Sizes
from paceline.server.tally import Tally
from paceline.transport.frames import Frame, Kind
from paceline.transport.memory import raw

SIZE, BLOCK, WORKERS = 7, 4, 2
BLOCKS = 2
GATES = ["at-once", "all", "bounded"]


class Line:
    """In place of a connection."""

    owed = 0

    def __init__(self) -> None:
        self.closed = False
        self.sent: deque[tuple[Frame, bytes]] = deque()
        self.answers: list[Frame] = []
        self.values = torch.zeros(SIZE)

    def send(self, frame: Frame, *payload: memoryview, steady: bool) -> None:
        if self.closed:
            return
        data = b"".join(payload)
        self.sent.append((frame, data))
        if frame.kind in (Kind.STATE, Kind.LATE):
            self.answers.append(frame)
            part = torch.frombuffer(bytearray(data), dtype=torch.float32)
            self.values[frame.block * BLOCK : frame.block * BLOCK + len(part)] = part

    def mute(self, silent: bool) -> None:
        pass

    def close(self) -> None:
        self.closed = True


def desk(gate: str, rule: str, tell: Any = None, kept: Kept | None = None) -> Desk:
    return Desk(
        SIZE,
        WORKERS,
        lambda: make_gate(gate, WORKERS, bound=3),
        lambda size: make_rule(rule, size, Hyper()),
        Tally(),
        block=BLOCK,
        tell=tell,
        kept=kept,
    )


def memory(rule: str) -> Kept:
    """As the supervisor holds it."""
    sizes = Sizes.of(SIZE, BLOCK, STATES[rule], WORKERS)
    words = memoryview(array("q", [0] * sizes.words))
    return Kept(torch.zeros(2, SIZE), torch.zeros(2, sizes.states, SIZE), words)


def width(block: int) -> int:
    return min(BLOCK, SIZE - block * BLOCK)


class Server:
    """A desk, its workers' lines, and what was told of its standby."""

    def __init__(self, served: Desk, gate: str) -> None:
        self.desk, self._gate = served, gate
        self.lines = [Line() for _ in range(WORKERS)]

    def tell(self, line: Any, frame: Frame, payload: Tensor | None = None) -> None:
        target = self.desk.target(line, frame)
        if target is not None and payload is not None:
            target[:] = raw(payload)
        self.desk.handle(line, frame)
        self.desk.tend()

    def init(self) -> None:
        for block in range(BLOCKS):
            part = torch.zeros(width(block))
            self.tell(Line(), Frame(Kind.INIT, 0, block=block, length=part.nbytes), part)

    def push(self, worker: int, sequence: int, value: float = -1.0, weight: float = 1.0) -> None:
        for block in range(BLOCKS):
            self.push_block(worker, sequence, block, value, weight)

    def push_block(
        self, worker: int, sequence: int, block: int, value: float = -1.0, weight: float = 1.0
    ) -> None:
        part = torch.full((width(block),), value) if weight else torch.empty(0)
        version = sequence - 1 if self._gate == "all" else 0
        where = {"block": block, "length": part.nbytes, "begin": sequence}
        frame = Frame(Kind.PUSH, worker, sequence, version, weight, 0.5, **where)
        self.tell(self.lines[worker], frame, part)

    def answered(self, worker: int) -> int:
        """The last push that every block has answered."""
        answers = self.lines[worker].answers
        return min(
            max((f.sequence for f in answers if f.block == block), default=0)
            for block in range(BLOCKS)
        )

    def pull(self) -> Tensor:
        line = Line()
        self.tell(line, Frame(Kind.PULL, 0))
        assert len(line.answers) == BLOCKS
        return line.values


class Pair(Server):
    """A server with a standby; what goes between them waits until it is delivered."""

    def __init__(self, gate: str, rule: str = "sgd", kept: Kept | None = None) -> None:
        self.told: list[tuple[str, int, int]] = []
        super().__init__(desk(gate, rule, lambda *what: self.told.append(what), kept), gate)
        self._rule = rule

    def follow(self, life: int = 0, kept: Kept | None = None) -> None:
        self.link = Line()
        self.behind = desk(self._gate, self._rule, kept=kept)
        self.shadow = Shadow(self.behind, WORKERS)
        self.tell(self.link, Frame(Kind.FOLLOW, 0, life))

    def deliver(self, count: int = 1000, acked: bool = True) -> int:
        """So many frames reach the standby, and its word comes back: how many there were."""
        done = 0
        while self.link.sent and done < count:
            frame, payload = self.link.sent.popleft()
            self.shadow.place(frame)[:] = payload
            self.shadow.take(frame)
            done += 1
            if acked:
                self.tell(self.link, Frame(Kind.ACK, 0, version=frame.version, block=frame.block))
        return done

    def promoted(self) -> Server:
        """The server is gone: its standby in its place."""
        self.shadow.take_over()
        self.behind.meet([0] * WORKERS, [])
        return Server(self.behind, self._gate)

    def same(self) -> None:
        for own, other in zip(self.desk.windows, self.behind.windows, strict=True):
            assert own.table.version == other.table.version
            for mine, theirs in zip(own.table.held, other.table.held, strict=True):
                assert torch.equal(mine, theirs)


@given(
    st.dictionaries(st.integers(0, 3), st.integers(1, 2**64 - 1)),
    st.dictionaries(st.integers(0, 3), st.tuples(st.integers(0, 2**31), st.integers(1, 9))),
)
def test_a_note_says_what_was_noted(
    pushes: dict[int, int], spans: dict[int, tuple[int, int]]
) -> None:
    shares = {worker: (begin, begin + count) for worker, (begin, count) in spans.items()}
    data = Note(pushes, shares).pack(4)
    assert len(data) == note_bytes(4)
    assert Note.unpack(data) == Note(pushes, shares)


@settings(max_examples=60, deadline=None)
@given(
    gate=st.sampled_from(GATES),
    rule=st.sampled_from(["sgd", "momentum", "adam", "lamb"]),
    values=st.lists(st.tuples(st.floats(-9, 9, width=32), st.integers(0, 3)), max_size=12),
    comes=st.integers(0, 12),
    pace=st.integers(0, 3),
)
def test_a_standby_that_comes_at_any_time_is_the_same_to_the_bit(
    gate: str, rule: str, values: list[tuple[float, int]], comes: int, pace: int
) -> None:
    pair = Pair(gate, rule)
    pair.init()
    for number, (value, weight) in enumerate(values):
        if number == comes:
            pair.follow()
        for worker in range(WORKERS):
            pair.push(worker, number + 1, value * (worker + 1), float(weight))
        if number >= comes:
            pair.deliver(pace)
    if comes >= len(values):
        pair.follow()
    pair.deliver()
    pair.same()
    assert [kind for kind, _, _ in pair.told] == ["in-step"]


def play(pair: Pair, until: int) -> None:
    """Three pushes of each worker, and all that goes to the standby, as far as the server lives."""
    for sequence in (1, 2, 3):
        for worker in range(WORKERS):
            for block in range(BLOCKS):
                if until <= 0:
                    return
                pair.push_block(worker, sequence, block)
                until -= 1
                while until > 0 and pair.deliver(1):
                    until -= 1
        if any(pair.answered(worker) < sequence for worker in range(WORKERS)):
            return


@pytest.mark.parametrize("rule", ["sgd", "momentum", "adam"])
@pytest.mark.parametrize("gate", GATES)
def test_a_server_dies_between_any_two_frames(gate: str, rule: str) -> None:
    """Its standby has every push that was answered, and takes none twice."""
    calm = Pair(gate, rule)
    calm.init()
    calm.follow()
    calm.deliver()
    play(calm, 1000)
    due = calm.pull()
    for until in range(40):
        struck = Pair(gate, rule)
        struck.init()
        struck.follow()
        struck.deliver()
        play(struck, until)
        answered = [struck.answered(worker) for worker in range(WORKERS)]
        after = struck.promoted()
        for worker, last in enumerate(answered):
            assert all(window.known_of(worker) >= last for window in after.desk.windows)
        for sequence in (1, 2, 3):  # they say again what was not answered, and go on
            for worker in range(WORKERS):
                if sequence > answered[worker]:
                    after.push(worker, sequence)
        torch.testing.assert_close(after.pull(), due, rtol=0, atol=0)


@pytest.mark.parametrize("count", [0, 1, 2])
@pytest.mark.parametrize("rule", ["sgd", "momentum", "adam"])
@pytest.mark.parametrize("gate", GATES)
def test_who_took_over_leaves_everything_to_its_successor(gate: str, rule: str, count: int) -> None:
    pair, kept = Pair(gate, rule), memory(rule)
    pair.init()
    pair.follow(kept=kept)
    for sequence in range(1, count + 1):
        for worker in range(WORKERS):
            pair.push(worker, sequence)
        pair.deliver()
    pair.deliver()
    second = pair.promoted()
    for taken in (count, count + 1):
        third = Pair(gate, rule, kept)
        assert torch.equal(third.pull(), second.pull())
        for worker in range(WORKERS):
            assert all(w.known_of(worker) == taken for w in third.desk.windows)
            second.push(worker, count + 1)
    third.follow()
    third.deliver()
    third.same()
    for worker in range(WORKERS):
        third.push(worker, count + 2)
    third.deliver()
    third.same()


def test_nobody_is_answered_before_the_standby_has_it() -> None:
    pair = Pair("at-once")
    pair.follow()
    assert pair.told == [("in-step", 1, 0)]
    pair.init()
    pair.deliver()
    pair.push(0, 1)
    assert pair.answered(0) == 0
    pair.deliver(1)
    assert len(pair.lines[0].answers) == 1
    pair.deliver()
    assert pair.answered(0) == 1


def test_a_pull_waits_too() -> None:
    """Else a worker would know a version that may be lost."""
    pair = Pair("at-once")
    pair.init()
    pair.follow()
    pair.deliver()
    pair.push(0, 1)
    line = Line()
    pair.tell(line, Frame(Kind.PULL, 1))
    assert not line.answers
    pair.deliver()
    assert [frame.version for frame in line.answers] == [1, 1]


def test_first_parameters_are_not_told_before_the_standby_has_them() -> None:
    pair = Pair("at-once")
    pair.follow()
    line = Line()
    pair.tell(line, Frame(Kind.PULL, 1))
    pair.init()
    assert not line.answers
    pair.deliver()
    assert len(line.answers) == BLOCKS


def test_a_server_goes_on_alone_once_the_supervisor_knows() -> None:
    pair = Pair("at-once")
    pair.init()
    pair.follow()
    pair.deliver()
    pair.push(0, 1)
    pair.link.close()
    pair.push(1, 1)
    assert pair.told == [("in-step", 1, 0), ("alone", 1, 0)]
    assert (pair.answered(0), pair.answered(1)) == (0, 0)
    pair.desk.permit(1)
    assert (pair.answered(0), pair.answered(1)) == (1, 1)
    pair.push(0, 2)
    assert pair.answered(0) == 2


def test_a_late_permission_does_not_let_go_of_the_next_standby() -> None:
    pair = Pair("at-once")
    pair.init()
    pair.follow()
    pair.deliver()
    pair.link.close()
    pair.desk.tend()
    pair.follow()
    pair.deliver()
    assert [kind for kind, _, _ in pair.told] == ["in-step", "alone", "in-step"]
    pair.desk.permit(1)
    pair.link.close()
    pair.push(0, 1)
    assert pair.answered(0) == 0
    assert pair.told[-1] == ("alone", 2, 0)


def test_a_standby_that_is_lost_while_it_catches_up_holds_up_nobody() -> None:
    pair = Pair("at-once")
    pair.init()
    pair.follow()
    pair.deliver(1)
    pair.push(0, 1)
    pair.link.close()
    pair.desk.tend()
    assert pair.answered(0) == 1
    assert pair.told == []


def test_only_a_later_life_takes_a_standbys_place() -> None:
    pair = Pair("at-once")
    pair.init()
    pair.follow(life=1)
    first = pair.link
    for life in (0, 1):
        with pytest.raises(WireError, match="has a standby already"):
            pair.tell(Line(), Frame(Kind.FOLLOW, 0, life))
    assert not first.closed
    pair.follow(life=2)
    assert first.closed
    pair.deliver()
    pair.same()


@pytest.mark.parametrize(
    "frame",
    [
        Frame(Kind.ACK, 0, version=1),
        Frame(Kind.ACK, 0, version=0),
        Frame(Kind.ACK, 0, version=2**64 - 1, block=1),
    ],
)
def test_what_was_not_sent_cannot_be_acknowledged(frame: Frame) -> None:
    pair = Pair("at-once")
    pair.init()
    pair.follow()
    pair.deliver()
    with pytest.raises(WireError):
        pair.tell(pair.link, frame)
    pair.push(0, 1)
    with pytest.raises(WireError):
        pair.tell(Line(), Frame(Kind.ACK, 0, version=1))
    assert pair.answered(0) == 0


def test_a_server_without_replicas_has_no_standby() -> None:
    alone = Server(desk("at-once", "sgd"), "at-once")
    for kind in (Kind.FOLLOW, Kind.ACK):
        with pytest.raises(WireError, match=f"frames of kind {kind:d}"):
            alone.tell(Line(), Frame(kind, 0))


@settings(max_examples=300, deadline=None)
@given(
    kind=st.sampled_from(list(Kind)),
    version=st.sampled_from([0, 1, 2, 3, 2**64 - 1]),
    block=st.sampled_from([0, 1, 2, 2**32 - 1]),
    length=st.sampled_from([0, 1, 31, 32, 44, 48, 60, 64, 2**40]),
    weight=st.floats(),
    lr=st.floats(),
)
def test_a_standby_takes_nothing_that_cannot_be(
    kind: Kind, version: int, block: int, length: int, weight: float, lr: float
) -> None:
    pair = Pair("at-once", "momentum")
    pair.init()
    pair.follow()
    pair.deliver()
    pair.push(0, 1)
    pair.deliver()
    before = pair.pull()
    frame = Frame(kind, 0, 0, version, weight, lr, block=block, length=length)
    try:
        target = pair.shadow.place(frame)
    except WireError:
        torch.testing.assert_close(pair.promoted().pull(), before, rtol=0, atol=0)
        return
    assert len(target) == length
    assert kind == Kind.BASE or (kind == Kind.APPLY and version == 2)
    pair.shadow.take(frame)
