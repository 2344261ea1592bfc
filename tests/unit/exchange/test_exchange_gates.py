"""Gates under every order of pushes and leaves: nothing is lost, nobody is answered twice."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.errors import UnknownName
from paceline.exchange.catalog import STRATEGIES
from paceline.exchange.gates import All, AtOnce, Bounded, make_gate
from paceline.server.gate import WAIT, Decision, Push


def push(worker: int, sequence: int = 1, version: int = 0) -> Push:
    return Push(worker, sequence, version, 1.0, 0.1, sequence)


@given(workers=st.integers(1, 6), data=st.data())
def test_a_round_closes_when_every_worker_that_counts_has_pushed(
    workers: int, data: st.DataObject
) -> None:
    """Drives the gate as workers do: nobody pushes again, or leaves, before it is answered."""
    gate = All(workers)
    counting = set(range(workers))
    waiting: dict[int, Push] = {}
    sequence = dict.fromkeys(counting, 0)
    sent: list[Push] = []
    applied: list[Push] = []
    closed = 0
    for _ in range(data.draw(st.integers(0, 60), label="events")):
        free = sorted(counting - waiting.keys())
        if not free:
            break
        worker = data.draw(st.sampled_from(free), label="worker")
        if data.draw(st.integers(0, 9), label="dice") == 0:
            counting.discard(worker)
            decision = gate.leave(worker)
        else:
            sequence[worker] += 1
            waiting[worker] = push(worker, sequence[worker], closed)
            sent.append(waiting[worker])
            decision = gate.push(waiting[worker])
        if waiting and counting <= waiting.keys():
            closed += 1
            assert set(decision.apply) == set(waiting.values())
            assert [p.worker for p in decision.apply] == sorted(waiting)
            assert sorted(decision.answer) == sorted(waiting)
            assert len(set(decision.answer)) == len(decision.answer)
            applied += decision.apply
            waiting.clear()
        else:
            assert decision == WAIT
    assert sorted([*applied, *waiting.values()]) == sorted(sent)
    assert len(set(applied)) == len(applied)


@given(st.permutations(range(5)))
def test_the_order_of_arrival_does_not_change_the_sum(order: list[int]) -> None:
    gate = All(5)
    decisions = [gate.push(push(worker)) for worker in order]
    assert decisions[:-1] == [WAIT] * 4
    assert [p.worker for p in decisions[-1].apply] == list(range(5))


def test_when_all_have_left_nothing_is_applied() -> None:
    gate = All(2)
    assert gate.leave(0) == WAIT
    assert gate.leave(1) == WAIT


def test_a_leaver_sets_the_waiting_free() -> None:
    gate = All(3)
    assert gate.push(push(0)) == WAIT
    assert gate.leave(1) == WAIT
    assert gate.leave(2).answer == (0,)


def test_what_a_gate_promises_a_server() -> None:
    """Whether gradients are kept, and whether an answer may change while it is sent."""
    promised = {
        "all": (All(4), True, True),
        "all but one": (All(4, backup=1), True, False),
        "at once": (AtOnce(4), False, False),
        "bounded": (Bounded(4, bound=2), False, False),
    }
    for gate, holds, steady in promised.values():
        assert (gate.holds, gate.steady) == (holds, steady)


@given(st.lists(st.integers(0, 3), max_size=50))
def test_at_once_applies_each_push_alone_and_answers_its_sender(order: list[int]) -> None:
    gate = AtOnce(4)
    for sequence, worker in enumerate(order, start=1):
        one = push(worker, sequence)
        decision = gate.push(one)
        assert decision.apply == (one,)
        assert decision.answer == (worker,)


def test_at_once_nobody_waits_for_who_leaves() -> None:
    assert AtOnce(4).leave(2) == WAIT


def test_every_gate_a_strategy_names_exists() -> None:
    for strategy in STRATEGIES.values():
        if strategy.served:
            one = make_gate(strategy.gate, 2, bound=1).push(push(0))
            assert set(one.answer) <= {0}


def test_an_unknown_gate_is_told_with_the_known_ones() -> None:
    with pytest.raises(UnknownName, match="at-once"):
        make_gate("none", 2)


# All, with shares by speed.


def told(worker: int, version: int, samples: int, seconds: float) -> Push:
    return Push(worker, version + 1, version, samples, 0.1, seconds=seconds)


def counts(gate: All, workers: int) -> list[int]:
    return [end - begin for begin, end in map(gate.share, range(workers))]


def test_without_balance_shares_are_even_whatever_was_measured() -> None:
    gate = All(2, whole=90)
    gate.push(told(0, 0, 45, 1.0))
    gate.push(told(1, 0, 45, 2.0))
    assert counts(gate, 2) == [45, 45]


def test_with_balance_the_next_round_is_shared_by_speed() -> None:
    gate = All(2, whole=90, balance=True)
    assert counts(gate, 2) == [45, 45]
    gate.push(told(1, 0, 45, 2.0))
    gate.push(told(0, 0, 45, 1.0))
    assert [gate.share(0), gate.share(1)] == [(0, 60), (60, 90)]


def test_with_balance_who_leaves_and_comes_back_gets_a_share_again() -> None:
    gate = All(3, whole=90, balance=True)
    for worker in range(3):
        gate.push(told(worker, 0, 30, 1.0))
    gate.leave(2)
    for worker in (0, 1):
        gate.push(told(worker, 1, 30, 1.0))
    assert counts(gate, 3) == [45, 45, 0]
    gate.join(2)
    assert gate.share(2) == (0, 0)  # of the round that is open
    for worker, samples in enumerate([45, 45, 0]):
        gate.push(told(worker, 2, samples, samples / 30))
    assert counts(gate, 3) == [30, 30, 30]


def test_with_balance_a_successor_goes_on_with_the_shares_that_were_told() -> None:
    gate = All(2, whole=90, balance=True)
    gate.resume(7, {0: 7, 1: 7}, {0: (0, 60), 1: (60, 90)})
    assert counts(gate, 2) == [60, 30]
    gate.push(told(0, 7, 60, 1.0))
    gate.push(told(1, 7, 30, 2.0))
    assert counts(gate, 2) == [72, 18]


# All, but for some.


@settings(deadline=None)
@given(workers=st.integers(1, 6), data=st.data())
def test_a_round_closes_with_the_first_of_enough_and_drops_the_late(
    workers: int, data: st.DataObject
) -> None:
    """Drives the gate as workers do, against what a round should be."""
    backup = data.draw(st.integers(0, workers - 1), label="backup")
    gate = All(workers, backup)
    counting = set(range(workers))
    held = dict.fromkeys(counting, 0)  # the version each worker computes from
    waiting: dict[int, Push] = {}
    sequence = dict.fromkeys(counting, 0)
    rounds = 0
    for _ in range(data.draw(st.integers(0, 80), label="events")):
        free = sorted(counting - waiting.keys())
        if not free:
            break
        worker = data.draw(st.sampled_from(free), label="worker")
        if data.draw(st.integers(0, 9), label="dice") == 0:
            counting.discard(worker)
            decision = gate.leave(worker)
        else:
            sequence[worker] += 1
            one = push(worker, sequence[worker], held[worker])
            decision = gate.push(one)
            if one.version < rounds:
                assert decision == Decision(drop=(worker,))
                held[worker] = rounds
                continue
            waiting[worker] = one
        assert decision.drop == ()
        if waiting and (counting <= waiting.keys() or len(waiting) >= workers - backup):
            assert decision.apply == tuple(waiting[w] for w in sorted(waiting))
            assert decision.answer == tuple(sorted(waiting))
            rounds += 1
            held.update(dict.fromkeys(waiting, rounds))
            waiting.clear()
        else:
            assert decision == WAIT


@given(workers=st.integers(2, 6), data=st.data())
def test_without_backups_no_round_is_larger_or_smaller(workers: int, data: st.DataObject) -> None:
    backup = data.draw(st.integers(1, workers - 1))
    order = data.draw(st.permutations(range(workers)))
    gate = All(workers, backup)
    decisions = [gate.push(push(worker, version=0)) for worker in order]
    first, late = decisions[: workers - backup], decisions[workers - backup :]
    assert first[:-1] == [WAIT] * (workers - backup - 1)
    assert {p.worker for p in first[-1].apply} == set(order[: workers - backup])
    assert late == [Decision(drop=(worker,)) for worker in order[workers - backup :]]


# Bounded.


@settings(deadline=None)
@given(workers=st.integers(1, 5), bound=st.integers(1, 4), data=st.data())
def test_nobody_is_ever_more_than_the_bound_ahead(
    workers: int, bound: int, data: st.DataObject
) -> None:
    gate = Bounded(workers, bound)
    counting = set(range(workers))
    rounds = dict.fromkeys(counting, 0)
    held: set[int] = set()
    for _ in range(data.draw(st.integers(0, 120), label="events")):
        free = sorted(counting - held)
        if not counting:
            break
        assert free, "all wait for each other"
        worker = data.draw(st.sampled_from(free), label="worker")
        if data.draw(st.integers(0, 14), label="dice") == 0:
            counting.discard(worker)
            decision = gate.leave(worker)
            assert decision.apply == ()
        else:
            rounds[worker] += 1
            held.add(worker)
            one = push(worker, rounds[worker])
            decision = gate.push(one)
            assert decision.apply == (one,)
        assert decision.drop == ()
        assert held.issuperset(decision.answer)
        assert len(set(decision.answer)) == len(decision.answer)
        held.difference_update(decision.answer)
        if counting:
            slowest = min(rounds[w] for w in counting)
            assert all(rounds[w] - slowest <= bound for w in counting)
            # Held is only who would otherwise be too far ahead with its next.
            assert held == {w for w in counting if rounds[w] + 1 - slowest > bound}


@given(workers=st.integers(1, 5), bound=st.integers(1, 3), data=st.data())
def test_when_the_others_leave_nobody_is_held(
    workers: int, bound: int, data: st.DataObject
) -> None:
    gate = Bounded(workers, bound)
    last = data.draw(st.integers(0, workers - 1))
    answered = 0
    for sequence in range(1, bound + 1):
        answered += len(gate.push(push(last, sequence)).answer)
    for worker in range(workers):
        if worker != last:
            answered += len(gate.leave(worker).answer)
    assert answered == bound
    assert gate.push(push(last, bound + 1)).answer == (last,)


def test_bounded_a_worker_that_comes_back_begins_where_the_slowest_is() -> None:
    gate = Bounded(2, 2)
    for round_ in (1, 2, 3):
        gate.push(push(0, round_))
    gate.push(push(1, 1))
    assert gate.leave(1) == Decision(answer=(0,))  # whoever waited for it waits no more
    for round_ in (4, 5, 6):
        assert gate.push(push(0, round_)).answer == (0,)
    gate.join(1)
    assert gate.share(1)[0] == 6
    assert gate.push(push(0, 7)).answer == (0,)  # nobody waits for it before its first push
    assert gate.push(push(1, 7)).answer == (1,)
    assert gate.push(push(0, 8)).answer == (0,)
    assert gate.push(push(0, 9)).answer == ()


def test_bounded_a_successor_counts_those_who_have_spoken() -> None:
    gate = Bounded(2, 2)
    gate.resume(9, {0: 5, 1: 4}, {})
    assert gate.push(push(0, 5)).answer == (0,)
    assert gate.push(push(1, 4)).answer == (1,)
    assert gate.push(push(0, 6)).answer == ()


def test_bounded_nobody_goes_back_for_one_that_was_given_up_and_is_heard_again() -> None:
    gate = Bounded(2, bound=2)
    gate.leave(1)
    for number in range(1, 9):
        assert gate.push(Push(0, number, 0, 1.0, 0.1, round=number)).answer == (0,)
    late = gate.push(Push(1, 1, 0, 1.0, 0.1, round=1))
    assert [push.sequence for push in late.apply] == [1]  # its samples count
    assert late.answer == (1,)
    assert gate.share(1) == (8, 0)  # and it goes on from there
    assert gate.push(Push(0, 9, 0, 1.0, 0.1, round=9)).answer == (0,)


@given(st.permutations(range(3)))
def test_a_round_waits_for_whoever_has_come_and_the_next_is_shared_with_it(
    order: list[int],
) -> None:
    gate = All(2, whole=12)
    gate.join(2)
    assert [gate.share(worker) for worker in range(3)] == [(0, 6), (6, 12), (0, 0)]
    decisions = [gate.push(push(worker)) for worker in order]
    assert decisions[:2] == [WAIT, WAIT]
    assert sorted(decisions[2].answer) == [0, 1, 2]
    assert [gate.share(worker) for worker in range(3)] == [(0, 4), (4, 8), (8, 12)]


@given(st.permutations(range(3)), st.integers(0, 2))
def test_the_round_after_somebodys_last_is_shared_out_without_it(
    order: list[int], leaver: int
) -> None:
    gate = All(3, whole=12)
    for worker in order:
        decision = gate.push(push(worker)._replace(last=worker == leaver))
    assert sorted(decision.answer) == [0, 1, 2]
    left = [worker for worker in range(3) if worker != leaver]
    assert [gate.share(worker) for worker in left] == [(0, 6), (6, 12)]
    assert gate.share(leaver) == (0, 0)
    assert gate.leave(leaver) == WAIT
    assert gate.push(push(left[0], 2, 1)) == WAIT
    assert sorted(gate.push(push(left[1], 2, 1)).answer) == left


def test_a_gate_tells_whom_others_wait_for() -> None:
    everybody = All(3)
    assert everybody.missing() == ()  # nobody has come, so nobody waits
    everybody.push(push(1))
    assert everybody.missing() == (0, 2)
    everybody.leave(2)
    assert everybody.missing() == (0,)
    everybody.push(push(0))
    assert everybody.missing() == ()
    near = Bounded(2, bound=1)
    near.push(push(0, 1))
    assert near.missing() == (1,)
    near.push(push(1, 1))
    assert near.missing() == ()
    at_once = AtOnce(2)
    at_once.push(push(0))
    assert at_once.missing() == ()
