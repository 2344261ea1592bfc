"""Who is started again, whose standby takes over, and when a run is given up."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import pytest

from paceline.launch.crew import Crew, Member
from paceline.launch.placement import Place
from paceline.launch.policy import Answer, Policy, can_rejoin, keeps_memory, lost_with, untold
from paceline.spec import RunSpec
from paceline.transport import memory
from paceline.transport.control import Control, pair
from paceline.types import Progress

AGAIN, GIVE_UP = Answer.START_AGAIN, Answer.GIVE_UP
GROUP = RunSpec(strategy="allreduce", workers=2)
TCP: dict[str, Any] = {"strategy": "ps-async", "workers": 2, "servers": 1, "transport": "tcp"}


@pytest.fixture
def crew() -> Iterator[Crew]:
    some, others = Crew(), []
    for kind in ("worker", "server", "standby"):
        ours, theirs = pair()
        others.append(theirs)
        some.add(Member(f"{kind}-0", kind, 0, Place(1, None), Control(ours)))
    yield some
    for member in some:
        member.control.close()
    for other in others:
        other.close()


def on_loss(crew: Crew, role: str, **more: Any) -> Answer:
    crew[role].code = -9
    return Policy(3).on_loss(RunSpec(**TCP, **more), crew[role], crew)


def test_a_server_whose_memory_outlives_it_is_started_again(crew: Crew) -> None:
    assert keeps_memory(RunSpec(**TCP))
    assert not keeps_memory(RunSpec(**TCP, max_restarts=0))
    crew["server-0"].kept = "server-0"
    assert on_loss(crew, "server-0") is Answer.START_AGAIN
    assert lost_with(RunSpec(**TCP), crew["server-0"], crew) == ""


def test_a_server_whose_memory_does_not_is_not(crew: Crew, monkeypatch: Any) -> None:
    monkeypatch.setattr(memory, "available", lambda: False)
    spec = RunSpec(**TCP)
    assert not can_rejoin(spec, "server")
    assert not keeps_memory(spec)
    assert on_loss(crew, "server-0") is Answer.GIVE_UP


def test_what_went_with_a_server_is_what_workers_were_answered(crew: Crew) -> None:
    spec, server, worker = RunSpec(**TCP), crew["server-0"], crew["worker-0"]
    server.code, server.progress = -9, Progress(step=1235)
    assert untold(spec, crew)
    assert "at least 1,234 updates that it had answered are lost" in lost_with(spec, server, crew)
    worker.answered = (1240,)
    assert not untold(spec, crew)
    assert "the 1,240 updates that it had answered are lost" in lost_with(spec, server, crew)
    worker.answered, worker.code = (), -9  # nobody knows what this one was answered
    assert not untold(spec, crew)
    assert "at least 1,234 updates" in lost_with(spec, server, crew)


def test_a_standby_takes_over_only_in_step_and_alive(crew: Crew) -> None:
    server, standby = crew["server-0"], crew["standby-0"]
    assert on_loss(crew, "server-0", replicas=1) is Answer.GIVE_UP
    standby.in_step = True
    assert on_loss(crew, "server-0", replicas=1) is Answer.PROMOTE
    standby.code = -9
    assert on_loss(crew, "server-0", replicas=1) is Answer.GIVE_UP
    told = lost_with(RunSpec(**TCP, replicas=1), server, crew)
    assert "and its standby was gone or not yet in step: at least 0 updates" in told
    server.kept = "server-0"
    assert on_loss(crew, "server-0", replicas=1) is Answer.START_AGAIN


def test_a_standby_is_started_again(crew: Crew) -> None:
    assert on_loss(crew, "standby-0", replicas=1) is Answer.START_AGAIN
    crew["standby-0"].life = 3
    assert on_loss(crew, "standby-0", replicas=1) is Answer.GIVE_UP


def test_a_promoted_standby_is_the_server_in_its_next_life(crew: Crew) -> None:
    before, standby = crew["server-0"], crew["standby-0"]
    before.life, standby.state = 1, "ready"
    before.memory = before.kept = "server-0"
    standby.memory = "standby-0-0"
    assert crew.promote(before) is standby
    assert crew["server-0"] is standby
    assert (standby.role, standby.kind, standby.life) == ("server-0", "server", 2)
    assert not standby.reached("ready")
    assert standby.kept == "server-0"  # until it serves
    assert crew.servers() == [standby]
    assert crew.standbys() == []


@pytest.fixture
def member() -> Iterator[Member]:
    ours, theirs = pair()
    some = Member("worker-1", "worker", 1, Place(1, None), Control(ours))
    some.code = -signal.SIGKILL
    yield some
    some.control.close()
    theirs.close()


@pytest.mark.parametrize(
    ("fields", "kind", "answer"),
    [
        ({"strategy": "allreduce", "workers": 2}, "worker", AGAIN),
        ({"strategy": "allreduce"}, "worker", GIVE_UP),  # nobody else has the parameters
        ({"strategy": "local-sgd", "workers": 2, "transport": "tcp"}, "worker", AGAIN),
        ({"strategy": "ps-async", "workers": 2, "transport": "shm"}, "worker", AGAIN),
        ({"strategy": "ps-sync", "workers": 2, "transport": "tcp"}, "server", AGAIN),
        ({"strategy": "single"}, "worker", AGAIN),
        ({"strategy": "single", "evaluator": True}, "evaluator", AGAIN),
    ],
)
def test_who_can_be_taken_back(
    member: Member, fields: dict[str, Any], kind: str, answer: Answer
) -> None:
    member.kind = kind
    member.kept = "server-1" if kind == "server" else ""
    assert Policy(3).on_loss(RunSpec(**fields), member, Crew()) is answer


def test_not_for_ever_and_not_in_a_script(member: Member) -> None:
    assert Policy(0).on_loss(GROUP, member, Crew()) is GIVE_UP
    assert Policy(3, own_loop=True).on_loss(GROUP, member, Crew()) is GIVE_UP
    member.life = 3
    assert Policy(3).on_loss(GROUP, member, Crew()) is GIVE_UP


def test_one_that_failed_by_itself_would_fail_again(member: Member) -> None:
    member.failure = ("ZeroDivisionError", "no")
    assert Policy(3).on_loss(GROUP, member, Crew()) is GIVE_UP
    member.failure, member.code = ("PeerLost", "gone for too long"), 1
    assert Policy(3).on_loss(GROUP, member, Crew()) is AGAIN
