"""Which requests are refused, how what was done is told, and how samples change hands."""

from __future__ import annotations

from typing import Any

import pytest

from paceline.launch import recutting
from paceline.launch.crew import Crew, Member
from paceline.launch.leases import LeaseBook
from paceline.launch.leasing import Leasing
from paceline.launch.placement import Place, room_for
from paceline.launch.resizing import Change, names, refusal
from paceline.spec import RunSpec
from paceline.store.requests import Request
from paceline.transport.control import Control, pair

ROOM = 16


def spec(strategy: str = "ps-sync", workers: int = 2, **more: Any) -> RunSpec:
    return RunSpec(strategy=strategy, workers=workers, batch=4, **more)


@pytest.mark.parametrize("workers", [1, 2, 8])
def test_what_can_be_is_not_refused(workers: int) -> None:
    for strategy in ("ps-sync", "ps-async", "ssp", "allreduce", "local-sgd", "hogwild"):
        assert refusal(spec(strategy), workers, ROOM) is None


@pytest.mark.parametrize(
    ("asked", "workers", "why"),
    [
        (spec("single", 1), 2, "'single' share nothing"),
        (spec("independent"), 3, "'independent' share nothing"),
        (spec(), 0, "at least one has to stay"),
        (spec("ps-async"), ROOM + 1, "room for 16"),
        (spec(), 9, "batch has 8 samples"),
        (spec(workers=3, backup=1), 4, "--backup 1 counts on the 3"),
    ],
)
def test_what_cannot_be_is_told_why(asked: RunSpec, workers: int, why: str) -> None:
    told = refusal(asked, workers, ROOM)
    assert told is not None
    assert why in told


@pytest.mark.parametrize(
    ("asked", "servers", "why"),
    [
        (spec("allreduce"), 2, "'allreduce' has no servers"),
        (spec(transport="shm"), 2, "live inside the workers"),
        (spec(transport="tcp", replicas=1), 2, "have standbys"),
        (spec(transport="tcp", max_restarts=0), 2, "leaves nothing"),
        (spec(transport="tcp", optimizer="lamb"), 2, "whole layers"),
        (spec(transport="tcp"), 0, "at least one"),
        (spec(transport="tcp"), 101, "100 at most"),
        (spec(transport="tcp", codec="int8"), 5, "4 at most"),
    ],
)
def test_how_many_servers_cannot_be(asked: RunSpec, servers: int, why: str) -> None:
    told = recutting.refusal(asked, servers, blocks=4, parameters=100)
    assert told is not None
    assert why in told
    assert recutting.refusal(spec(transport="tcp"), 4, blocks=4, parameters=100) is None


def test_there_is_room_for_more_than_there_are() -> None:
    assert room_for(2, 2) == 16
    assert room_for(2, 8) == 32
    assert room_for(100, 8) == 100


def test_what_was_done_is_told_by_round() -> None:
    change = Change(1, Request(workers=4), 0.0, 2)
    change.joined += [("worker-3", 120), ("worker-2", 120), ("worker-10", 121)]
    change.left += [("worker-1", None)]
    assert change.said(0.64) == [
        "worker-2 and worker-3 joined at round 120 after 0.6 s",
        "worker-10 joined at round 121 after 0.6 s",
        "worker-1 left after 0.6 s",
    ]
    assert names(["worker-10", "worker-9", "worker-8"]) == "worker-8, worker-9 and worker-10"


class Desk:
    """Two workers that lease samples, and what each was last told."""

    def __init__(self, samples: int) -> None:
        self.crew = Crew()
        self.heard: list[Control] = []
        for index in range(2):
            ours, theirs = pair()
            self.heard.append(Control(theirs))
            place = Place(1, None)
            member = Member(f"worker-{index}", "worker", index, place, Control(ours))
            member.state = "ready"
            self.crew.add(member)
        self.leasing = Leasing(self.crew)
        self.leasing.book = LeaseBook(samples, 10, 2, 1, None)

    def ask(self, worker: int, done: int) -> tuple[int, int] | str | None:
        self.leasing.ask(self.crew.worker(worker), done)
        return self.told(worker)

    def told(self, worker: int) -> tuple[int, int] | str | None:
        answer = self.heard[worker].take("lease")
        if answer is None:
            return "nothing yet"
        return None if answer["epoch"] is None else (answer["start"], answer["stop"])

    def close(self) -> None:
        for member in self.crew:
            member.control.close()
        for control in self.heard:
            control.close()


@pytest.fixture
def desk() -> Any:
    made = Desk(40)
    yield made
    made.close()


def test_what_a_leaver_had_not_begun_goes_to_one_that_would_have_been_told_to_end(
    desk: Desk,
) -> None:
    assert [desk.ask(0, 0), desk.ask(1, 0), desk.ask(0, 0)] == [(0, 10), (10, 20), (20, 30)]
    assert desk.ask(1, 0) == (30, 40)
    desk.crew.worker(1).leaving = True
    assert desk.ask(0, 2) == "nothing yet"
    assert not desk.leasing.over
    desk.crew.worker(1).state = "left"
    desk.leasing.left(desk.crew.worker(1), 1)
    assert desk.told(0) == (30, 40)
    assert desk.ask(0, 3) is None
    assert desk.leasing.over


def test_a_leaver_is_told_at_once_that_nothing_is_left(desk: Desk) -> None:
    for worker in (0, 0, 1, 1):
        desk.ask(worker, 0)
    desk.crew.worker(1).leaving = True
    assert desk.ask(1, 2) is None
    assert not desk.leasing.over


def test_nobody_waits_for_one_that_took_its_last_step_after_all(desk: Desk) -> None:
    for worker in (0, 0, 1, 1):
        desk.ask(worker, 0)
    desk.crew.worker(1).leaving = True
    assert desk.ask(0, 2) == "nothing yet"
    desk.crew.worker(1).state = "trained"
    desk.leasing.turn()
    assert desk.told(0) is None


def test_a_run_that_is_stopped_gives_out_nothing_more(desk: Desk) -> None:
    for worker in (0, 0, 1, 1):
        desk.ask(worker, 0)
    desk.crew.worker(1).leaving = True
    assert desk.ask(0, 2) == "nothing yet"
    desk.leasing.stop()
    assert desk.told(0) is None
