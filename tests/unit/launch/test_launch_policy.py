"""Who is started again: whoever was killed, and can be taken back in."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import pytest

from paceline.launch.crew import Member
from paceline.launch.placement import Place
from paceline.launch.policy import Answer, Policy
from paceline.spec import RunSpec
from paceline.transport.control import Control, pair

AGAIN, GIVE_UP = Answer.START_AGAIN, Answer.GIVE_UP
GROUP = RunSpec(strategy="allreduce", workers=2)


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
    assert Policy(3).on_loss(RunSpec(**fields), member) is answer


def test_not_for_ever_and_not_in_a_script(member: Member) -> None:
    assert Policy(0).on_loss(GROUP, member) is GIVE_UP
    assert Policy(3, own_loop=True).on_loss(GROUP, member) is GIVE_UP
    member.life = 3
    assert Policy(3).on_loss(GROUP, member) is GIVE_UP


def test_one_that_failed_by_itself_would_fail_again(member: Member) -> None:
    member.failure = ("ZeroDivisionError", "no")
    assert Policy(3).on_loss(GROUP, member) is GIVE_UP
    member.failure, member.code = ("PeerLost", "gone for too long"), 1
    assert Policy(3).on_loss(GROUP, member) is AGAIN
