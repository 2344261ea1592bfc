"""Whom the supervisor buries, and which roles can come back at all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from paceline.exchange.layout import ROLL, layout, roll
from paceline.exchange.muster import Muster
from paceline.exchange.quorum import Quorum
from paceline.launch.burying import Burying
from paceline.launch.crew import Member
from paceline.launch.placement import Place
from paceline.launch.policy import can_rejoin
from paceline.launch.segments import Segments
from paceline.spec import RunSpec
from paceline.transport import memory
from paceline.transport.control import Control, pair

pytestmark = pytest.mark.skipif(not memory.available(), reason="no memfd here")

ROUNDS = RunSpec(strategy="ps-sync", transport="shm", workers=2)


@pytest.fixture
def segments() -> Iterator[Segments]:
    found = Segments()
    found.size(layout(ROUNDS, 10, 2, 1), 10)
    yield found
    found.close()


@pytest.fixture
def members() -> Iterator[list[Member]]:
    ends = [pair() for _ in range(2)]
    yield [
        Member(f"worker-{i}", "worker", i, Place(1, None, 0), Control(ours))
        for i, (ours, _) in enumerate(ends)
    ]
    for ours, theirs in ends:
        ours.close()
        theirs.close()


def test_nobody_waits_for_the_dead(segments: Segments, members: list[Member]) -> None:
    muster = Muster(segments.board(), ROLL, 2)
    burying = Burying(segments)
    burying.begin(ROUNDS, (0, 1), 2)
    muster.arrive(0, 1, 5, 0.1)
    assert not muster.complete(1)
    assert burying.lost(ROUNDS, members[1])
    assert muster.complete(1)
    assert [worker for worker, _ in muster.turnout(1).pushes] == [0]


def test_somebody_may_have_been_about_to_let_it_in(
    segments: Segments, members: list[Member]
) -> None:
    """It is buried again until its next life is up, which may then take it that it was let in."""
    muster, words = Muster(segments.board(), ROLL, 2), segments.board().words
    burying = Burying(segments)
    burying.begin(ROUNDS, (0, 1), 2)
    burying.lost(ROUNDS, members[1])
    words[ROLL + 1] = 3
    assert not muster.complete(4)
    burying.turn()
    words[ROLL] = 4  # worker-0 is there
    assert muster.complete(4)
    burying.back(members[1])
    words[ROLL + 1] = 3
    burying.turn()
    assert not muster.complete(4)


def test_when_all_are_dead_there_is_nobody_to_come_back_to(
    segments: Segments, members: list[Member]
) -> None:
    burying = Burying(segments)
    burying.begin(ROUNDS, (0, 1), 2)
    assert burying.lost(ROUNDS, members[0])
    assert not burying.lost(ROUNDS, members[1])


def test_what_those_left_who_have_finished_is_enough(
    segments: Segments, members: list[Member]
) -> None:
    burying = Burying(segments)
    burying.begin(ROUNDS, (0, 1), 2)
    Muster(segments.board(), ROLL, 2).finish(0)
    assert burying.lost(ROUNDS, members[1])


def test_where_there_are_no_rounds_nobody_is_buried(members: list[Member]) -> None:
    assert Burying(Segments()).lost(RunSpec(strategy="ps-async", transport="tcp"), members[0])


@pytest.mark.parametrize(
    ("asked", "kind"),
    [
        ({"strategy": "ps-sync", "transport": "shm"}, Muster),
        ({"strategy": "local-sgd", "transport": "shm"}, Muster),
        ({"strategy": "ps-sync", "transport": "shm", "backup": 1}, Quorum),
        ({"strategy": "ps-sync", "transport": "tcp"}, None),
        ({"strategy": "ps-async", "transport": "shm"}, None),
        ({"strategy": "allreduce"}, None),
    ],
    ids=str,
)
def test_who_keeps_a_roll(asked: dict[str, Any], kind: type | None) -> None:
    assert roll(RunSpec(workers=2, **asked)) is kind


@pytest.mark.parametrize(
    ("strategy", "transport", "server"),
    [
        ("single", "auto", False),
        ("independent", "auto", False),
        ("allreduce", "auto", False),
        ("local-sgd", "tcp", False),
        ("local-sgd", "shm", False),
        ("hogwild", "shm", False),
        *[(name, "shm", False) for name in ("ps-sync", "ps-async", "ssp")],
        *[(name, "tcp", True) for name in ("ps-sync", "ps-async", "ssp")],
    ],
)
def test_who_can_come_back(strategy: str, transport: str, server: bool) -> None:
    """Every worker and evaluator, and servers that are processes of their own."""
    workers = 1 if strategy == "single" else 2
    spec = RunSpec(strategy=strategy, transport=transport, workers=workers)
    assert can_rejoin(spec, "worker")
    assert can_rejoin(spec, "evaluator")
    assert can_rejoin(spec, "server") is server


def test_nobody_waits_for_those_that_had_left_before_a_run_was_taken_up(
    segments: Segments,
) -> None:
    Burying(segments).begin(ROUNDS, (1,), 2)
    muster = Muster(segments.board(), ROLL, 2)
    muster.arrive(1, 7, 5, 0.1)
    assert muster.complete(7)
    assert muster.turnout(7).members() == [1]
