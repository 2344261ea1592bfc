"""Gates under every order of pushes and leaves: nothing is lost, nobody is answered twice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.errors import UnknownName
from paceline.exchange.catalog import STRATEGIES
from paceline.exchange.gates import All, AtOnce, make_gate
from paceline.server.gate import WAIT, Push


def push(worker: int, sequence: int = 1) -> Push:
    return Push(worker, sequence, 0, 1.0, 0.1)


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
            waiting[worker] = push(worker, sequence[worker])
            sent.append(waiting[worker])
            decision = gate.push(waiting[worker])
        if waiting and counting <= waiting.keys():
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


def test_all_share_one_place() -> None:
    gate = All(4)
    assert gate.places == 1
    assert {gate.place(worker) for worker in range(4)} == {0}


@given(st.lists(st.integers(0, 3), max_size=50))
def test_at_once_applies_each_push_alone_and_answers_its_sender(order: list[int]) -> None:
    gate = AtOnce(4)
    for sequence, worker in enumerate(order, start=1):
        one = push(worker, sequence)
        decision = gate.push(one)
        assert decision.apply == (one,)
        assert decision.answer == (worker,)


def test_at_once_gives_each_worker_a_place_of_its_own() -> None:
    gate = AtOnce(4)
    assert gate.places == 4
    assert [gate.place(worker) for worker in range(4)] == [0, 1, 2, 3]
    assert gate.leave(2) == WAIT


def test_every_gate_a_strategy_names_exists() -> None:
    for strategy in STRATEGIES.values():
        if strategy.served:
            assert make_gate(strategy.gate, 2).places >= 1


def test_an_unknown_gate_is_told_with_the_known_ones() -> None:
    with pytest.raises(UnknownName, match="at-once"):
        make_gate("none", 2)
