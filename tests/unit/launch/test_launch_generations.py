"""Who forms the next group: whatever dies, parks or comes back, in whatever order."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from paceline.launch.generations import Generations
from paceline.types import NOTHING, Parked, Plan

WHOLE = 30


def parked(version: int, generation: int = 0, **how: bool) -> Parked:
    said = {"left": False, **how}
    return Parked(generation=generation, version=version, **said)


NEW = Parked(generation=NOTHING, version=NOTHING, left=True)


def planned(generations: Generations) -> Plan:
    plan = generations.plan()
    assert plan is not None
    return plan


def test_those_left_go_on_from_the_one_that_is_furthest() -> None:
    generations = Generations(range(4), WHOLE)
    generations.parked(0, parked(7))
    generations.parked(3, parked(8))
    assert generations.plan() is None, "worker-1 and worker-2 may still be computing"
    generations.gone(2)
    assert generations.plan() is None
    generations.parked(1, parked(8))
    assert planned(generations) == Plan(
        generation=1,
        members=(0, 1, 3),
        source=1,
        version=8,
        shares=((0, 10), (10, 20), (20, 30)),
        between=False,
    )
    assert generations.plan() is None


def test_whoever_comes_back_is_let_in_between_two_rounds() -> None:
    generations = Generations(range(2), WHOLE)
    generations.gone(1)
    generations.parked(0, parked(3))
    assert planned(generations).members == (0,)
    generations.parked(1, NEW)
    assert generations.calls() == [0]
    assert generations.calls() == [], "once is enough"
    assert generations.plan() is None
    generations.parked(0, parked(9, generation=1, left=True))
    plan = planned(generations)
    assert (plan.generation, plan.members, plan.source, plan.version) == (2, (0, 1), 0, 9)
    assert plan.between
    assert not plan.over


def test_in_the_middle_of_a_round_nobody_is_let_in() -> None:
    generations = Generations(range(3), WHOLE)
    generations.gone(2)
    generations.parked(2, NEW)
    assert generations.calls() == [0, 1]
    generations.parked(0, parked(5, left=True))
    generations.parked(1, parked(4))  # it lost worker-2 in the round after which it was to leave
    assert planned(generations).members == (0, 1)
    assert generations.calls() == [0, 1], "called again, as another generation"


def test_all_are_called_once_one_has_lost_another() -> None:
    """It may be the only one that has: others wait where they hear nothing but a call."""
    generations = Generations(range(3), WHOLE)
    generations.leave(2)
    assert generations.calls() == [0, 1, 2]
    assert not generations.broken
    generations.parked(1, parked(4, broken=True))
    assert generations.broken
    assert generations.calls() == [0, 2], "again, now that there can be no further round"
    assert generations.calls() == []
    generations.parked(0, parked(4, broken=True))
    generations.parked(2, parked(4, broken=True))
    assert planned(generations).members == (0, 1, 2)
    assert not generations.broken


def test_one_that_dies_while_it_waits_is_not_waited_for() -> None:
    generations = Generations(range(2), WHOLE)
    generations.gone(1)
    generations.parked(1, NEW)
    assert generations.calls() == [0]
    generations.gone(1)
    generations.parked(0, parked(4, left=True))
    assert planned(generations).members == (0,)


def test_those_at_rest_are_called_and_end_it_for_all() -> None:
    generations = Generations(range(3), WHOLE)
    assert generations.calls() == []
    generations.gone(2)
    generations.parked(1, parked(11))  # worker-2 took the last round with it
    assert generations.calls() == [0]
    assert generations.plan() is None
    generations.parked(0, parked(12, left=True, over=True))
    plan = planned(generations)
    assert (plan.members, plan.source, plan.version, plan.over) == ((0, 1), 0, 12, True)


def test_a_plan_that_came_to_nothing_is_made_anew() -> None:
    generations = Generations(range(2), WHOLE)
    generations.parked(0, parked(2))
    generations.parked(1, parked(2))
    assert planned(generations).generation == 1
    generations.parked(0, parked(2, generation=0))  # said before that plan
    generations.parked(1, parked(2, generation=1))
    assert generations.plan() is None
    generations.gone(0)
    assert planned(generations).members == (1,)


def test_it_is_lost_when_nobody_has_the_parameters() -> None:
    generations = Generations(range(2), WHOLE)
    generations.gone(0)
    generations.gone(1)
    assert not generations.lost, "at a run's end all are gone"
    generations.parked(1, NEW)
    assert generations.lost
    assert generations.plan() is None
    # Worker-0 died before it had given its checkpoint to the others.
    generations = Generations(range(2), WHOLE)
    generations.gone(0)
    generations.parked(1, parked(NOTHING, left=True))
    assert generations.lost
    assert generations.plan() is None


def test_a_member_that_is_to_leave_is_not_in_the_next_group() -> None:
    generations = Generations(range(3), WHOLE)
    generations.leave(1)
    assert generations.calls() == [0, 1, 2]
    for worker in range(3):
        generations.parked(worker, parked(4, left=True))
    plan = planned(generations)
    assert plan.members == (0, 2)
    assert [end - begin for begin, end in plan.shares] == [WHOLE // 2, WHOLE // 2]
    assert generations.calls() == []


def test_nobody_leaves_in_the_middle_of_a_round() -> None:
    """It may be the only one that has got to the end of it."""
    generations = Generations(range(3), WHOLE)
    generations.leave(1)
    generations.gone(2)
    generations.calls()
    generations.parked(0, parked(4))
    generations.parked(1, parked(5))
    plan = planned(generations)
    assert (plan.members, plan.source, plan.version) == ((0, 1), 1, 5)
    assert generations.calls() == [0, 1]
    for worker in (0, 1):
        generations.parked(worker, parked(6, generation=1, left=True))
    assert planned(generations).members == (0,)


def test_one_that_is_to_leave_stays_as_long_as_nobody_else_has_the_parameters() -> None:
    generations = Generations(range(1), WHOLE)
    generations.leave(0)
    generations.parked(1, NEW)
    assert generations.calls() == [0]
    generations.parked(0, parked(4, left=True))
    assert planned(generations).members == (0, 1)
    assert generations.calls() == [0, 1]
    for worker in (0, 1):
        generations.parked(worker, parked(5, generation=1, left=True))
    assert planned(generations).members == (1,)


@dataclass
class Life:
    version: int = 0
    generation: int = 0
    waits: bool = False
    rests: bool = False


class World:
    """Workers that do as they are told, and die as they like."""

    def __init__(self, workers: int) -> None:
        self.generations = Generations(range(workers), WHOLE)
        self.lives = {worker: Life() for worker in range(workers)}
        self.called: set[int] = set()
        self.leaving: set[int] = set()

    def kill(self, worker: int) -> None:
        if self.lives.pop(worker, None) is not None:
            self.called.discard(worker)
            self.leaving.discard(worker)
            self.generations.gone(worker)

    def come_back(self, worker: int) -> None:
        if worker not in self.lives:
            self.lives[worker] = Life(NOTHING, NOTHING, waits=True)
            self.generations.parked(worker, NEW)

    def leave(self, worker: int) -> None:
        """Somebody is asked to go."""
        if worker in self.lives and worker in self.generations.members:
            self.leaving.add(worker)
            self.generations.leave(worker)

    def take_round(self, finishers: set[int]) -> None:
        """All take a round, or as many as got to its end before somebody died in it."""
        together = self.together()
        if together and not any(life.rests for life in together.values()):
            whole = len(together) == self.size
            for worker, life in together.items():
                life.version += whole or worker in finishers

    def end(self) -> None:
        """The round was the last, for those that have come to its end."""
        together = self.together()
        furthest = max((life.version for life in together.values()), default=0)
        for life in together.values():
            if life.version == furthest:
                life.rests = True

    def park(self, worker: int, left: bool) -> None:
        life = self.lives.get(worker)
        if life is not None and not life.waits:
            life.waits = True
            broken = worker not in self.called  # nobody has asked it to
            self.called.discard(worker)
            left = left or life.rests
            said = parked(life.version, life.generation, left=left, over=life.rests, broken=broken)
            self.generations.parked(worker, said)

    def together(self) -> dict[int, Life]:
        now = self.generations.current
        return {w: x for w, x in self.lives.items() if x.generation == now and not x.waits}

    size = 0  # of the last plan

    def turn(self) -> None:
        before = self.generations.current
        self.called |= set(self.generations.calls())
        members = self.generations.members
        plan = self.generations.plan()
        if plan is None:
            assert self.generations.current == before
            return
        assert plan.generation == self.generations.current == before + 1
        assert list(plan.members) == sorted(set(plan.members))
        there = {worker: self.lives[worker] for worker in plan.members}  # living ones alone
        assert all(life.waits for life in there.values())
        assert plan.version == there[plan.source].version > NOTHING
        assert plan.version == max(life.version for life in there.values())
        assert [end - begin for begin, end in plan.shares] == [
            *(WHOLE * (r + 1) // len(there) - WHOLE * r // len(there) for r in range(len(there)))
        ]
        assert plan.over == any(life.rests for life in there.values())
        for worker in members.difference(plan.members):
            assert worker in self.leaving, "nobody else is left out"
            self.leaving.discard(worker)
            del self.lives[worker]
        self.size = len(there)
        for life in there.values():
            life.version, life.generation, life.waits = plan.version, plan.generation, False
            if plan.over and not life.rests:
                life.rests = True

    def settle(self) -> None:
        """Whoever is called parks, until nothing is left to do; nobody finds out by itself."""
        for _ in range(20):
            if self.generations.lost:
                assert all(life.version == NOTHING for life in self.lives.values())
                return
            self.turn()
            training = self.together()
            broken = len(training) < self.size
            for worker in training.keys() & self.called:
                self.park(worker, left=not broken)
        assert self.together().keys() == self.lives.keys(), "somebody is forgotten"
        if self.lives:
            assert len({life.version for life in self.lives.values()}) == 1


WORKERS = st.integers(0, 3)
ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("kill"), WORKERS),
        st.tuples(st.just("come_back"), WORKERS),
        st.tuples(st.just("leave"), WORKERS),
        st.tuples(st.just("take_round"), st.sets(WORKERS)),
        st.tuples(st.just("park"), WORKERS, st.booleans()),
        st.tuples(st.just("turn")),
        st.tuples(st.just("settle")),
        st.tuples(st.just("end")),
    ),
    max_size=40,
)


@given(st.integers(1, 4), ACTS)
def test_nobody_is_forgotten(workers: int, acts: list[tuple[object, ...]]) -> None:
    world = World(workers)
    world.size = workers
    for name, *arguments in acts:
        if world.generations.lost or not world.lives:
            break
        getattr(world, str(name))(*arguments)
    world.settle()
