"""Who is to blame when several roles fail one after another."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import pytest

from paceline.launch.crew import Crew, Member
from paceline.launch.placement import Place
from paceline.transport.control import Control, pair


@pytest.fixture
def crew() -> Iterator[Crew]:
    some = Crew()
    others = []
    for index in range(3):
        ours, theirs = pair()
        others.append(theirs)
        some.add(Member(f"worker-{index}", "worker", index, Place(1, None), Control(ours)))
    yield some
    for member in some:
        member.control.close()
    for other in others:
        other.close()


def test_nobody_is_to_blame_while_all_is_well(crew: Crew) -> None:
    assert crew.culprit() is None
    crew["worker-0"].state = "done"
    crew["worker-0"].code = 0
    assert crew.culprit() is None
    assert crew["worker-0"].live()["state"] == "ended"


ENDS: list[tuple[dict[str, Any], str]] = [
    ({"code": -signal.SIGKILL}, "was killed by signal 9 (SIGKILL, by hand or by the system"),
    ({"code": -signal.SIGSEGV}, "was killed by signal 11 (SIGSEGV)"),
    ({"failure": ("ValueError", "bad (task.py, line 3)")}, "failed with ValueError: bad"),
    ({"code": 3}, "ended with exit code 3 before it was done"),
    ({"failure": ("PeerLost", "server-0 closed the connection.")}, "failed with PeerLost"),
]


@pytest.mark.parametrize(("end", "words"), ENDS)
def test_an_end_in_words(crew: Crew, end: dict[str, Any], words: str) -> None:
    member = crew["worker-1"]
    for name, value in end.items():
        setattr(member, name, value)
    assert member.failed
    assert member.end_in_words().startswith(words)
    assert member.live()["state"] == "failed"


@pytest.mark.parametrize("worse", range(len(ENDS) - 1))
def test_the_cause_comes_before_its_echo(crew: Crew, worse: int) -> None:
    """A role that lost a peer only tells that something else went before."""
    for role, end in (("worker-0", ENDS[-1][0]), ("worker-2", ENDS[worse][0])):
        for name, value in end.items():
            setattr(crew[role], name, value)
    assert crew.culprit() is crew["worker-2"]


def test_a_killed_role_that_had_said_it_failed_is_still_named_by_what_it_said_last(
    crew: Crew,
) -> None:
    member = crew["worker-1"]
    member.failure = ("PeerLost", "a worker left the all-reduce")
    member.code = 1
    crew["worker-0"].code = -signal.SIGKILL
    assert crew.culprit() is crew["worker-0"]


def test_servers_inside_workers_are_listed_with_their_hosts(crew: Crew) -> None:
    crew.shards, crew.hosts = 4, (0, 1, 2)
    for index, member in enumerate(crew):
        member.pid = 100 + index
    roles = {role["role"]: role for role in crew.live()}
    assert [roles[f"server-{s}"]["inside"] for s in range(4)] == [
        "worker-0",
        "worker-1",
        "worker-2",
        "worker-0",
    ]
    assert roles["server-3"]["pid"] == 100
    assert crew.inside(crew["worker-0"]) == ["server-0", "server-3"]
