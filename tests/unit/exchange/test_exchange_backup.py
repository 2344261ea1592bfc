"""Backup workers over several blocks: whatever comes in whatever order, rounds are as planned."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from paceline.exchange.gates import All
from paceline.server.gate import Decision, Push

ROUNDS = 5


class Worker:
    """Pushes every block of a round, waits for all answers, goes on with the newest round."""

    def __init__(self, index: int, gates: list[All]) -> None:
        self.index = index
        self._gates = gates
        self.round = 0
        self.left = False
        self._begin()

    def _begin(self) -> None:
        self.to_push = list(range(len(self._gates)))
        self.answers: list[int] = []

    def answered(self, version: int) -> None:
        self.answers.append(version)
        if len(self.answers) == len(self._gates):
            self.round = max(self.answers)
            self._begin()

    @property
    def done(self) -> bool:
        return self.round >= ROUNDS


class Stage:
    def __init__(self, workers: int, backup: int, blocks: int) -> None:
        self.gates = [All(workers, backup) for _ in range(blocks)]
        self.workers = [Worker(index, self.gates) for index in range(workers)]
        self.closed = [0] * blocks
        self.enough = workers - backup

    def moves(self) -> list[tuple[Worker, int]]:
        """What could arrive next: a worker's push at a block, or its leaving at all of them."""
        found = []
        for worker in self.workers:
            if not worker.left:
                found += [(worker, -1)] if worker.done else [(worker, b) for b in worker.to_push]
        return found

    def move(self, worker: Worker, block: int) -> None:
        if block < 0:
            worker.left = True
            for at, gate in enumerate(self.gates):
                self.act(at, gate.leave(worker.index))
            return
        worker.to_push.remove(block)
        push = Push(worker.index, worker.round + 1, worker.round, 1.0, 0.1)
        self.act(block, self.gates[block].push(push))

    def act(self, block: int, decision: Decision) -> None:
        if decision.apply:
            assert {push.version for push in decision.apply} == {self.closed[block]}
            self.closed[block] += 1
            counting = sum(not worker.left for worker in self.workers)
            assert len(decision.apply) >= min(self.enough, counting)
        for worker in (*decision.answer, *decision.drop):
            self.workers[worker].answered(self.closed[block])


@given(
    workers=st.integers(2, 5), backup=st.integers(0, 4), blocks=st.integers(1, 4), data=st.data()
)
def test_every_block_closes_every_round(
    workers: int, backup: int, blocks: int, data: st.DataObject
) -> None:
    stage = Stage(workers, min(backup, workers - 1), blocks)
    dice = data.draw(st.randoms(use_true_random=False))
    while moves := stage.moves():
        stage.move(*dice.choice(moves))
    assert all(worker.left for worker in stage.workers), "somebody waits for ever"
    assert stage.closed == [ROUNDS] * blocks


def test_what_comes_for_a_later_round_waits_for_it() -> None:
    gate = All(3, backup=1)
    assert not gate.push(Push(2, 1, 1, 1.0, 0.1)).apply
    assert not gate.push(Push(0, 1, 0, 1.0, 0.1)).apply
    assert [push.worker for push in gate.push(Push(1, 1, 0, 1.0, 0.1)).apply] == [0, 1]
    assert [push.worker for push in gate.push(Push(0, 2, 1, 1.0, 0.1)).apply] == [0, 2]
    assert gate.push(Push(1, 2, 1, 1.0, 0.1)).drop == (1,)
