"""A desk with a connection that only writes down what it is told: exactly once, or refused."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from paceline.errors import WireError
from paceline.exchange.gates import All, AtOnce
from paceline.server.gate import Gate
from paceline.server.rules import Hyper, make_rule
from paceline.server.serve import Desk, Tally
from paceline.server.table import Table
from paceline.transport.frames import Frame, Kind
from paceline.transport.memory import raw

SIZE = 5
NBYTES = SIZE * 4


class Note:
    """In place of a connection."""

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self.values: list[Tensor] = []

    def send(self, frame: Frame, payload: memoryview) -> None:
        assert frame.length == len(payload)
        self.frames.append(frame)
        self.values.append(torch.frombuffer(bytearray(payload), dtype=torch.float32))


class Stand:
    """A desk, and words to speak to it as a worker does."""

    def __init__(self, gate: Gate, workers: int, init: bool = True) -> None:
        self.tally = Tally()
        slots = torch.full((gate.places, SIZE), torch.nan)
        grads = torch.full((workers, SIZE), torch.nan)
        self.table = Table(slots, grads, make_rule("sgd", SIZE, Hyper()))
        self.desk = Desk(self.table, gate, grads, self.tally)
        if init:
            self.tell(Note(), Frame(Kind.INIT, 0, length=NBYTES), torch.zeros(SIZE))

    def tell(self, connection: Note, frame: Frame, payload: Tensor | None = None) -> None:
        target = self.desk.target(frame)
        assert (target is None) == (payload is None)
        if target is not None and payload is not None:
            target[:] = raw(payload)
        self.desk.handle(connection, frame)  # type: ignore[arg-type]

    def push(
        self, connection: Note, worker: int, sequence: int, value: float, version: int = 0
    ) -> None:
        frame = Frame(Kind.PUSH, worker, sequence, version, 1.0, 1.0, length=NBYTES)
        self.tell(connection, frame, torch.full((SIZE,), value))


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 3)), max_size=40))
def test_every_push_is_applied_once_however_often_it_is_sent(
    pushes: list[tuple[int, int]],
) -> None:
    """Each item: a worker's next push, and how many times it is sent."""
    stand, note = Stand(AtOnce(3), 3), Note()
    sequence = [0, 0, 0]
    total = 0.0
    for worker, times in pushes:
        sequence[worker] += 1
        value = 2.0**worker
        total += value
        for _ in range(times):
            stand.push(note, worker, sequence[worker], -value, stand.table.version)
    assert stand.tally.applied == stand.table.version == len(pushes)
    assert torch.equal(
        stand.table.slot(stand.table.current).nan_to_num(), torch.full((SIZE,), total)
    )
    assert len(note.frames) == sum(times for _, times in pushes)
    assert all(frame.kind == Kind.STATE for frame in note.frames)


def test_a_replay_is_answered_with_what_it_was_answered_before() -> None:
    stand, first, again = Stand(AtOnce(2), 2), Note(), Note()
    stand.push(Note(), 1, 1, -1.0)
    stand.push(first, 0, 1, -1.0)
    stand.push(again, 0, 1, -1.0)
    assert first.frames[0].staleness == again.frames[0].staleness == 1
    assert torch.equal(first.values[0], again.values[0])


def test_a_push_that_waits_is_answered_where_it_was_sent_last() -> None:
    """A worker that lost its connection sends again over a new one; the gate waits for another."""
    stand, lost, new, other = Stand(All(2), 2), Note(), Note(), Note()
    stand.push(lost, 0, 1, -1.0)
    stand.push(new, 0, 1, -1.0)
    assert stand.tally.applied == 0
    stand.push(other, 1, 1, -3.0)
    assert stand.tally.applied == 1  # one update of both
    assert lost.frames == []
    assert len(new.frames) == len(other.frames) == 1
    assert torch.equal(new.values[0], torch.full((SIZE,), 2.0))  # the mean of 1 and 3


def test_in_step_all_are_answered_with_the_same_version() -> None:
    stand, notes = Stand(All(3), 3), [Note(), Note(), Note()]
    for sequence in (1, 2, 3):
        for worker in (2, 0, 1):
            stand.push(notes[worker], worker, sequence, -1.0, sequence - 1)
    assert stand.table.version == 3
    for note in notes:
        assert [frame.version for frame in note.frames] == [1, 2, 3]
        assert [frame.staleness for frame in note.frames] == [0, 0, 0]


def test_staleness_counts_the_versions_in_between() -> None:
    stand, note = Stand(AtOnce(2), 2), Note()
    for sequence in (1, 2, 3):
        stand.push(Note(), 1, sequence, -1.0, stand.table.version)
    stand.push(note, 0, 1, -1.0, version=0)
    assert note.frames[0].staleness == 3
    assert note.frames[0].version == 4


def test_a_worker_without_samples_takes_the_round_without_a_payload() -> None:
    stand, empty, full = Stand(All(2), 2), Note(), Note()
    stand.tell(empty, Frame(Kind.PUSH, 0, 1, 0, 0.0, 1.0))
    stand.push(full, 1, 1, -2.0)
    assert torch.equal(empty.values[0], torch.full((SIZE,), 2.0))


def test_a_leaver_is_not_waited_for() -> None:
    stand, note = Stand(All(2), 2), Note()
    stand.push(note, 0, 1, -1.0)
    stand.tell(Note(), Frame(Kind.LEAVE, 1))
    assert len(note.frames) == 1


def test_early_pulls_are_held_until_there_are_parameters() -> None:
    stand, note = Stand(AtOnce(2), 2, init=False), Note()
    stand.tell(note, Frame(Kind.PULL, 1))
    assert note.frames == []
    stand.tell(Note(), Frame(Kind.INIT, 0, length=NBYTES), torch.ones(SIZE))
    assert torch.equal(note.values[0], torch.ones(SIZE))
    assert note.frames[0].version == 0


def test_a_pull_brings_the_newest_version_to_each_place() -> None:
    stand, note = Stand(AtOnce(3), 3), Note()
    stand.push(Note(), 2, 1, -7.0)
    for worker in (0, 1, 2):
        stand.tell(note, Frame(Kind.PULL, worker))
    assert all(torch.equal(values, torch.full((SIZE,), 7.0)) for values in note.values)


def test_a_push_before_there_are_parameters_is_refused() -> None:
    stand = Stand(AtOnce(1), 1, init=False)
    with pytest.raises(WireError, match="before there were parameters"):
        stand.push(Note(), 0, 1, -1.0)
    assert stand.tally.applied == 0


REFUSED = {
    "a worker that is not there": Frame(Kind.PUSH, 2, 1, weight=1.0, length=NBYTES),
    "too short": Frame(Kind.PUSH, 0, 1, weight=1.0, length=NBYTES - 4),
    "too long": Frame(Kind.PUSH, 0, 1, weight=1.0, length=NBYTES + 4),
    "far too long": Frame(Kind.PUSH, 0, 1, weight=1.0, length=1 << 39),
    "samples without a gradient": Frame(Kind.PUSH, 0, 1, weight=1.0),
    "a pull with a payload": Frame(Kind.PULL, 0, length=NBYTES),
    "parameters a second time": Frame(Kind.INIT, 0, length=NBYTES),
    "parameters without parameters": Frame(Kind.INIT, 0),
    "a leave with a payload": Frame(Kind.LEAVE, 0, length=4),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_does_not_fit_is_refused_unread(what: str) -> None:
    stand = Stand(AtOnce(2), 2)
    with pytest.raises(WireError):
        stand.desk.target(REFUSED[what])


@pytest.mark.parametrize("kind", [Kind.STATE, Kind.FAULT])
def test_what_only_servers_say_is_refused(kind: Kind) -> None:
    stand = Stand(AtOnce(2), 2)
    with pytest.raises(WireError, match=f"kind {int(kind)}"):
        stand.desk.handle(Note(), Frame(kind, 0))  # type: ignore[arg-type]


def test_a_gradient_of_a_version_still_to_come_is_refused() -> None:
    """It would have a negative staleness, which no frame can carry."""
    stand = Stand(AtOnce(2), 2)
    with pytest.raises(WireError, match="version"):
        stand.push(Note(), 0, 1, -1.0, version=9)
    assert stand.tally.applied == 0
