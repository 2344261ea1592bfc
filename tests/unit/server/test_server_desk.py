"""A desk with a connection that only writes down what it is told: exactly once, or refused."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from paceline.errors import WireError
from paceline.exchange.codecs.make import make_codec
from paceline.exchange.gates import make_gate
from paceline.server.desk import Desk
from paceline.server.rules import Hyper, make_rule
from paceline.server.tally import Tally
from paceline.transport import slate
from paceline.transport.frames import Frame, Kind
from paceline.transport.memory import raw

SIZE = 5
NBYTES = SIZE * 4


class Note:
    """In place of a connection; one that has hung up, so that others may push for its worker."""

    owed = 0
    closed = True

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self.values: list[Tensor] = []
        self.steady: list[bool] = []

    def send(self, frame: Frame, payload: memoryview, *, steady: bool) -> None:
        assert frame.length == len(payload)
        self.frames.append(frame)
        self.values.append(torch.frombuffer(bytearray(payload), dtype=torch.float32))
        self.steady.append(steady)


class Stand:
    """A desk, and words to speak to it as a worker does."""

    def __init__(
        self,
        gate: str,
        workers: int,
        *,
        block: int = SIZE,
        codec: str = "none",
        damp: bool = False,
        init: bool = True,
        room: int = 0,
        **options: int,
    ) -> None:
        self.tally = Tally()
        self.codec = None if codec == "none" else make_codec(codec)
        self.desk = Desk(
            SIZE,
            workers,
            lambda: make_gate(gate, workers, **options),
            lambda size: make_rule("sgd", size, Hyper()),
            self.tally,
            block=block,
            codec=self.codec,
            damp=damp,
            room=room,
        )
        self.block = block
        self.count = -(-SIZE // block)
        if init:
            self.init(torch.zeros(SIZE))

    @property
    def params(self) -> Tensor:
        return self.desk.params

    @property
    def version(self) -> int:
        return self.desk.applied

    def tell(self, connection: Note, frame: Frame, payload: Tensor | None = None) -> None:
        target = self.desk.target(connection, frame)  # type: ignore[arg-type]
        assert (target is None) == (payload is None)
        if target is not None and payload is not None:
            target[:] = raw(payload)
        self.desk.handle(connection, frame)  # type: ignore[arg-type]

    def init(self, values: Tensor) -> None:
        for block, part in enumerate(values.split(self.block)):
            self.tell(Note(), Frame(Kind.INIT, 0, block=block, length=part.nbytes), part)

    def push(
        self,
        connection: Note,
        worker: int,
        sequence: int,
        value: float,
        version: int = 0,
        block: int = 0,
        weight: float = 1.0,
        lr: float = 1.0,
    ) -> None:
        """One block of a gradient that is the same everywhere."""
        values = torch.full((min(self.block, SIZE - block * self.block),), value)
        if self.codec is not None:
            coded = torch.empty(self.codec.room(len(values)), dtype=torch.uint8)
            values = coded[: self.codec.encode(values, coded)]
        frame = Frame(
            *(Kind.PUSH, worker, sequence, version, weight, lr, 0, block, values.nbytes),
            begin=sequence,
        )
        self.tell(connection, frame, values)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 3)), max_size=40))
def test_every_push_is_applied_once_however_often_it_is_sent(
    pushes: list[tuple[int, int]],
) -> None:
    """Each item: a worker's next push, and how many times it is sent."""
    stand, note = Stand("at-once", 3), Note()
    sequence = [0, 0, 0]
    total = 0.0
    for worker, times in pushes:
        sequence[worker] += 1
        value = 2.0**worker
        total += value
        for _ in range(times):
            stand.push(note, worker, sequence[worker], -value, stand.version)
    assert stand.version == len(pushes)
    assert torch.equal(stand.params, torch.full((SIZE,), total))
    assert len(note.frames) == sum(times for _, times in pushes)
    assert all(frame.kind == Kind.STATE for frame in note.frames)


def test_a_replay_is_answered_with_what_it_was_answered_before() -> None:
    stand, first, again = Stand("at-once", 2), Note(), Note()
    stand.push(Note(), 1, 1, -1.0)
    stand.push(first, 0, 1, -1.0)
    stand.push(again, 0, 1, -1.0)
    assert first.frames[0].staleness == again.frames[0].staleness == 1
    assert torch.equal(first.values[0], again.values[0])


def test_a_push_that_waits_is_answered_where_it_was_sent_last() -> None:
    """A worker that lost its connection sends again over a new one; the gate waits for another."""
    stand, lost, new, other = Stand("all", 2), Note(), Note(), Note()
    stand.push(lost, 0, 1, -1.0)
    stand.push(new, 0, 1, -1.0)
    assert stand.version == 0
    stand.push(other, 1, 1, -3.0)
    assert stand.version == 1  # one update of both
    assert lost.frames == []
    assert len(new.frames) == len(other.frames) == 1
    assert torch.equal(new.values[0], torch.full((SIZE,), 2.0))  # the mean of 1 and 3


def test_in_step_all_are_answered_with_the_same_version() -> None:
    stand, notes = Stand("all", 3), [Note(), Note(), Note()]
    for sequence in (1, 2, 3):
        for worker in (2, 0, 1):
            stand.push(notes[worker], worker, sequence, -1.0, sequence - 1)
    assert stand.version == 3
    for note in notes:
        assert [frame.version for frame in note.frames] == [1, 2, 3]
        assert [frame.staleness for frame in note.frames] == [0, 0, 0]


def test_staleness_counts_the_versions_in_between() -> None:
    stand, note = Stand("at-once", 2), Note()
    for sequence in (1, 2, 3):
        stand.push(Note(), 1, sequence, -1.0, stand.version)
    stand.push(note, 0, 1, -1.0, version=0)
    assert note.frames[0].staleness == 3
    assert note.frames[0].version == 4


def test_a_worker_without_samples_takes_the_round_without_a_payload() -> None:
    stand, empty, full = Stand("all", 2), Note(), Note()
    stand.tell(empty, Frame(Kind.PUSH, 0, 1, 0, 0.0, 1.0))
    stand.push(full, 1, 1, -2.0)
    assert torch.equal(empty.values[0], torch.full((SIZE,), 2.0))


def test_a_leaver_is_not_waited_for() -> None:
    stand, note = Stand("all", 2), Note()
    stand.push(note, 0, 1, -1.0)
    stand.tell(Note(), Frame(Kind.LEAVE, 1))
    assert len(note.frames) == 1


def test_it_knows_for_whom_a_round_waits() -> None:
    stand = Stand("all", 3, block=SIZE // 2, init=False)
    stand.tell(Note(), Frame(Kind.PULL, 1))
    assert stand.desk.awaited() == (1, [slate.OTHERS])
    stand.init(torch.zeros(SIZE))
    assert stand.desk.awaited() == (0, [])
    for worker in (0, 2):
        stand.push(Note(), worker, 1, -1.0)
    assert stand.desk.awaited() == (1, [slate.worker(1)])
    stand.push(Note(), 1, 1, -1.0)
    assert stand.desk.awaited() == (0, [])
    stand.push(Note(), 1, 1, -1.0, block=1)
    assert stand.desk.awaited() == (1, [slate.worker(0), slate.worker(2)])


def test_early_pulls_are_held_until_there_are_parameters() -> None:
    stand, note = Stand("at-once", 2, init=False), Note()
    stand.tell(note, Frame(Kind.PULL, 1))
    assert note.frames == []
    stand.init(torch.ones(SIZE))
    assert torch.equal(note.values[0], torch.ones(SIZE))
    assert note.frames[0].version == 0


def test_a_pull_brings_the_newest_version_to_every_worker() -> None:
    stand, note = Stand("at-once", 3), Note()
    stand.push(Note(), 2, 1, -7.0)
    for worker in (0, 1, 2):
        stand.tell(note, Frame(Kind.PULL, worker))
    assert all(torch.equal(values, torch.full((SIZE,), 7.0)) for values in note.values)


def test_a_push_before_there_are_parameters_is_refused() -> None:
    stand = Stand("at-once", 1, init=False)
    with pytest.raises(WireError, match="before there were parameters"):
        stand.push(Note(), 0, 1, -1.0)
    assert stand.version == 0


REFUSED = {
    "a worker that is not there": Frame(Kind.PUSH, 2, 1, weight=1.0, length=NBYTES),
    "too short": Frame(Kind.PUSH, 0, 1, weight=1.0, length=NBYTES - 4),
    "too long": Frame(Kind.PUSH, 0, 1, weight=1.0, length=NBYTES + 4),
    "far too long": Frame(Kind.PUSH, 0, 1, weight=1.0, length=1 << 39),
    "samples without a gradient": Frame(Kind.PUSH, 0, 1, weight=1.0),
    "a pull with a payload": Frame(Kind.PULL, 0, length=NBYTES),
    "parameters without parameters": Frame(Kind.INIT, 0),
    "a leave with a payload": Frame(Kind.LEAVE, 0, length=4),
    "a block that is not there": Frame(Kind.PUSH, 0, 1, weight=1.0, block=1, length=NBYTES),
    "a pull of a block that is not there": Frame(Kind.PULL, 0, block=2**32 - 1),
    "a push of no samples with a payload": Frame(Kind.PUSH, 0, 1, length=NBYTES),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_does_not_fit_is_refused_unread(what: str) -> None:
    stand = Stand("at-once", 2)
    with pytest.raises(WireError):
        stand.desk.target(Note(), REFUSED[what])  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [Kind.STATE, Kind.FAULT, Kind.LATE])
def test_what_only_servers_say_is_refused(kind: Kind) -> None:
    stand = Stand("at-once", 2)
    with pytest.raises(WireError, match=f"kind {int(kind)}"):
        stand.desk.handle(Note(), Frame(kind, 0))  # type: ignore[arg-type]


def test_a_gradient_of_a_version_still_to_come_is_refused() -> None:
    """It would have a negative staleness, which no frame can carry."""
    stand = Stand("at-once", 2)
    with pytest.raises(WireError, match="version"):
        stand.push(Note(), 0, 1, -1.0, version=9)
    assert stand.version == 0


# Blocks.


def test_each_block_is_applied_by_itself_and_once() -> None:
    stand, note = Stand("all", 2, block=2), Note()
    for worker in (0, 1):
        stand.push(note, worker, 1, -1.0, block=1)
    assert torch.equal(stand.params, torch.tensor([0.0, 0, 1, 1, 0]))
    for block in (2, 0):
        for worker in (1, 0):
            stand.push(note, worker, 1, -1.0, block=block)
    assert torch.equal(stand.params, torch.ones(SIZE))
    assert [frame.block for frame in note.frames] == [1, 1, 2, 2, 0, 0]
    assert {len(values) for values in note.values} == {1, 2}


@settings(deadline=None)
@given(st.permutations([(w, b) for w in range(2) for b in range(3)] * 2))
def test_blocks_in_any_order_and_twice_make_one_update(order: list[tuple[int, int]]) -> None:
    stand, note = Stand("all", 2, block=2), Note()
    for worker, block in order:
        stand.push(note, worker, 1, -1.0 - 2 * worker, block=block)
    assert torch.equal(stand.params, torch.full((SIZE,), 2.0))  # the mean of 1 and 3
    assert all(window.table.version == 1 for window in stand.desk.windows)


def test_a_pull_brings_every_block() -> None:
    stand, note = Stand("at-once", 2, block=2, init=False), Note()
    stand.tell(note, Frame(Kind.PULL, 1))
    stand.init(torch.arange(5.0))
    stand.tell(note, Frame(Kind.PULL, 1))
    for half in (note.values[:3], note.values[3:]):
        assert torch.equal(torch.cat(half), torch.arange(5.0))


def test_an_answer_that_others_may_change_is_said_to_be_so() -> None:
    for gate, options, steady in (
        ("all", {}, True),
        ("all", {"backup": 1}, False),
        ("at-once", {}, False),
        ("bounded", {"bound": 2}, False),
    ):
        stand, note = Stand(gate, 2, **options), Note()
        stand.push(note, 0, 1, -1.0)
        stand.push(note, 1, 1, -1.0)
        assert note.steady
        assert set(note.steady) == {steady}


# Gates that drop, hold or damp.


def test_what_comes_late_is_answered_and_not_applied() -> None:
    stand, notes = Stand("all", 3, backup=1), [Note(), Note(), Note()]
    for worker in (0, 2, 1):
        stand.push(notes[worker], worker, 1, -1.0 if worker != 1 else -100.0)
    assert torch.equal(stand.params, torch.ones(SIZE))
    assert [note.frames[0].kind for note in notes] == [Kind.STATE, Kind.LATE, Kind.STATE]
    assert notes[1].frames[0].version == 1
    assert torch.equal(notes[1].values[0], torch.ones(SIZE))
    assert stand.tally.dropped == 1


def test_a_late_push_sent_again_is_late_again_and_counted_once() -> None:
    stand, note = Stand("all", 2, backup=1), Note()
    stand.push(Note(), 0, 1, -1.0)
    for _ in range(3):
        stand.push(note, 1, 1, -5.0)
    assert [frame.kind for frame in note.frames] == [Kind.LATE] * 3
    assert stand.tally.dropped == 1
    assert torch.equal(stand.params, torch.ones(SIZE))


def test_whoever_is_too_far_ahead_waits_and_its_push_is_applied_at_once() -> None:
    stand, fast, slow = Stand("bounded", 2, bound=2), Note(), Note()
    stand.push(fast, 0, 1, -1.0)
    stand.push(fast, 0, 2, -1.0, version=1)
    assert len(fast.frames) == 1
    assert torch.equal(stand.params, torch.full((SIZE,), 2.0))
    stand.push(slow, 1, 1, -1.0)
    assert len(fast.frames) == 2
    assert torch.equal(fast.values[1], torch.full((SIZE,), 3.0))


def test_damped_gradients_count_by_their_staleness() -> None:
    stand = Stand("at-once", 2, damp=True)
    for sequence in range(1, 5):
        stand.push(Note(), 1, sequence, 0.0, version=sequence - 1)
    stand.push(Note(), 0, 1, -1.0, version=0)
    assert torch.equal(stand.params, torch.full((SIZE,), 0.25))


# Codecs.


@pytest.mark.parametrize("codec", ["bf16", "fp16", "int8", "topk:1", "onebit"])
def test_coded_gradients_are_applied_decoded_and_once(codec: str) -> None:
    stand, note = Stand("at-once", 2, block=2, codec=codec), Note()
    for block in (0, 1, 2):
        for _ in range(2):
            stand.push(note, 1, 1, -1.0, block=block)
    torch.testing.assert_close(stand.params, torch.ones(SIZE))
    assert stand.version == 1


@pytest.mark.parametrize("length", [1, 15, 17, NBYTES, 1 << 39])
def test_a_coded_push_of_another_length_is_refused(length: int) -> None:
    stand = Stand("at-once", 2, codec="int8")  # 5 floats are 9 bytes
    frame = Frame(Kind.PUSH, 0, 1, 0, 1.0, 1.0, length=length)
    with pytest.raises(WireError):
        stand.tell(Note(), frame, torch.zeros(min(length, 9), dtype=torch.uint8))
    assert torch.equal(stand.params, torch.zeros(SIZE))


def test_a_push_that_cannot_be_decoded_changes_nothing_and_may_be_sent_again() -> None:
    stand, note = Stand("at-once", 2, codec="int8"), Note()
    frame = Frame(Kind.PUSH, 0, 1, 0, 1.0, 1.0, length=9)
    with pytest.raises(WireError):
        stand.tell(note, frame, torch.full((9,), 0x80, dtype=torch.uint8))
    assert (stand.version, note.frames) == (0, [])
    stand.push(note, 0, 1, -1.0)
    torch.testing.assert_close(stand.params, torch.ones(SIZE))


# What a peer that has the secret and means harm, or is broken, cannot do.


def test_parameters_that_come_slowly_do_not_replace_those_that_came_meanwhile() -> None:
    stand = Stand("at-once", 2, init=False)
    slow = Frame(Kind.INIT, 0, length=NBYTES)
    target = stand.desk.target(Note(), slow)  # type: ignore[arg-type]
    assert target is not None
    stand.init(torch.zeros(SIZE))
    stand.push(Note(), 1, 1, -1.0)
    target[:] = raw(torch.full((SIZE,), 9.0))
    stand.desk.handle(Note(), slow)  # type: ignore[arg-type]
    assert torch.equal(stand.params, torch.ones(SIZE))


def test_half_of_the_first_parameters_is_none() -> None:
    stand, note = Stand("at-once", 2, init=False), Note()
    target = stand.desk.target(Note(), Frame(Kind.INIT, 0, length=NBYTES))  # type: ignore[arg-type]
    assert target is not None
    target[:8] = raw(torch.ones(2))
    stand.tell(note, Frame(Kind.PULL, 1))
    assert note.frames == []


@pytest.mark.parametrize("codec", ["none", "int8"])
def test_a_gradient_that_waits_cannot_be_changed(codec: str) -> None:
    stand, note = Stand("all", 2, codec=codec), Note()
    stand.push(note, 0, 1, -1.0)
    stand.push(note, 0, 1, -100.0)  # the same name
    with pytest.raises(WireError, match="before the one before"):
        stand.push(note, 0, 2, -100.0)
    with pytest.raises(WireError, match="version"):
        stand.push(note, 0, 1, -100.0, version=2)
    stand.push(note, 1, 1, -1.0)
    torch.testing.assert_close(stand.params, torch.ones(SIZE))


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf"), 1e39])
@pytest.mark.parametrize("name", ["weight", "lr"])
def test_a_weight_or_rate_that_is_no_number_is_refused_unread(name: str, number: float) -> None:
    stand = Stand("at-once", 2)
    carries = NBYTES if name == "lr" or number > 0 else 0
    frame = Frame(Kind.PUSH, 0, 1, 0, 1.0, 1.0, length=carries)._replace(**{name: number})
    with pytest.raises(WireError, match=r"weight .* and rate"):
        stand.desk.target(Note(), frame)  # type: ignore[arg-type]


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -1.0])
def test_seconds_that_cannot_be_are_refused_unread(number: float) -> None:
    frame = Frame(Kind.PUSH, 0, 1, 0, 1.0, 1.0, length=NBYTES, seconds=number)
    with pytest.raises(WireError, match=f"took {number:g} seconds"):
        Stand("at-once", 2).desk.target(Note(), frame)  # type: ignore[arg-type]


def test_a_negative_weight_is_refused() -> None:
    with pytest.raises(WireError, match="weight -1"):
        Stand("at-once", 2).desk.target(Note(), Frame(Kind.PUSH, 0, 1, 0, -1.0, 1.0))  # type: ignore[arg-type]


def test_pulls_before_there_are_parameters_take_no_memory() -> None:
    stand, note = Stand("at-once", 2, init=False), Note()
    for _ in range(100):
        stand.tell(note, Frame(Kind.PULL, 1))
    stand.init(torch.zeros(SIZE))
    assert len(note.frames) == 1


class Staying(Note):
    """A connection that stays, until it is closed."""

    closed = False

    def close(self) -> None:
        self.closed = True


def test_one_connection_pushes_for_a_worker() -> None:
    stand, first, second = Stand("at-once", 2), Staying(), Staying()
    stand.push(first, 0, 1, -1.0)
    with pytest.raises(WireError, match="another connection"):
        stand.push(second, 0, 2, -1.0)
    stand.push(second, 1, 1, -1.0)
    first.close()
    with pytest.raises(WireError, match="another connection"):
        stand.push(Staying(), 1, 2, -1.0)
    stand.push(Staying(), 0, 2, -1.0)
    assert stand.version == 3


def test_a_worker_that_is_lost_is_not_waited_for_and_may_come_back() -> None:
    stand, one, two = Stand("all", 2, whole=8), Staying(), Staying()
    stand.push(one, 0, 1, -1.0)
    assert one.frames == []
    stand.desk.lose(1, 0)
    assert one.frames[-1].version == 1  # the round closed without it
    assert (one.frames[-1].begin, one.frames[-1].end) == (0, 8)
    stand.tell(two, Frame(Kind.PULL, 1, 1))
    assert two.frames[-1].version == 1
    assert (two.frames[-1].begin, two.frames[-1].end) == (0, 0)  # its round is shared out already
    stand.push(one, 0, 2, -1.0, version=1)
    assert len(one.frames) == 1  # it counts again
    stand.tell(two, Frame(Kind.PUSH, 1, 1, 1))
    assert [(f.begin, f.end) for f in (one.frames[-1], two.frames[-1])] == [(0, 4), (4, 8)]


def test_a_worker_that_is_heard_again_counts_again_once_all_servers_hear_it() -> None:
    stand, one, two = Stand("all", 2, whole=8), Staying(), Staying()
    stand.push(one, 0, 1, -1.0)
    stand.desk.miss(1)
    assert one.frames[-1].version == 1
    stand.push(two, 1, 1, -1.0)  # of the round that is over
    assert two.frames[-1].kind == Kind.LATE
    assert stand.desk.returned == [1]
    stand.push(one, 0, 2, -1.0, version=1)
    assert (one.frames[-1].version, one.frames[-1].end) == (2, 8)  # still without it
    stand.desk.meet_again(1)
    stand.push(one, 0, 3, -1.0, version=2)
    assert one.frames[-1].version == 2
    stand.push(two, 1, 2, 0.0, version=2, weight=1e-9)
    assert [(f.begin, f.end) for f in (one.frames[-1], two.frames[-1])] == [(0, 4), (4, 8)]
    assert stand.desk.returned == [1]  # told once


def test_a_gradient_that_a_lost_worker_left_counts_and_its_next_life_goes_on_after_it() -> None:
    stand, one, two, again = Stand("all", 2), Staying(), Staying(), Staying()
    stand.push(two, 1, 1, -3.0)
    stand.desk.lose(1, 0)
    assert two.closed
    stand.tell(again, Frame(Kind.PULL, 1, 1))
    assert again.frames == []  # not before the round is closed
    stand.push(one, 0, 1, -1.0)
    torch.testing.assert_close(stand.params, torch.full((SIZE,), 2.0))
    assert (again.frames[-1].sequence, again.frames[-1].version) == (1, 1)


@pytest.mark.parametrize("life", [0, 2, 2**64 - 1])
def test_only_the_life_that_the_supervisor_knows_of_is_let_in(life: int) -> None:
    stand = Stand("all", 2)
    stand.desk.lose(1, 0)
    with pytest.raises(WireError, match="not known"):
        stand.tell(Staying(), Frame(Kind.PULL, 1, life))


@pytest.mark.parametrize("codec", ["none", "bf16"])
@pytest.mark.parametrize("gate", ["at-once", "bounded", "all"])
def test_a_worker_may_come_that_was_not_there_at_the_start(gate: str, codec: str) -> None:
    options = {"bound": 3} if gate == "bounded" else {}
    stand = Stand(gate, 2, codec=codec, room=4, **options)
    line = Note()
    with pytest.raises(WireError, match="names worker 2"):
        stand.push(line, 2, 1, -1.0)
    stand.desk.lose(2, 0)
    stand.tell(line, Frame(Kind.PULL, 2, 1))
    notes = [Note(), Note(), line]
    for worker, note in enumerate(notes):
        stand.push(note, worker, 1, -1.0)
    assert stand.version == (1 if gate == "all" else 3)
    assert stand.params.eq(1.0 if gate == "all" else 3.0).all()


def test_there_is_no_room_for_everybody() -> None:
    stand = Stand("at-once", 2, room=3)
    stand.desk.lose(2, 0)
    stand.desk.lose(1, 0)
    with pytest.raises(WireError, match="names worker 3"):
        stand.push(Note(), 3, 1, -1.0)
