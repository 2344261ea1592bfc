"""What the supervisor makes of servers' words on their standbys and on workers they do not hear."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from paceline.errors import RunFailed
from paceline.launch import succession
from paceline.launch.crew import Crew, Member
from paceline.launch.placement import Place
from paceline.launch.succession import Succession
from paceline.transport.control import Control, Message, pair


class House:
    """Two workers, two servers and their standbys, and what each was told."""

    def __init__(self) -> None:
        self.crew, self._ends = Crew(), dict[str, Control]()
        for kind, index in itertools.product(("worker", "server", "standby"), range(2)):
            ours, theirs = pair()
            self._ends[f"{kind}-{index}"] = Control(theirs)
            self.crew.add(Member(f"{kind}-{index}", kind, index, Place(1, None), Control(ours)))
        self.events: list[tuple[str, str]] = []
        never: Any = None  # nobody is started here
        self.succession = Succession(
            self.crew, never, lambda role, kind, _: self.events.append((role, kind))
        )

    def say(self, role: str, kind: str, **more: Any) -> None:
        assert self.succession.hear(self.crew[role], {"kind": kind, **more})

    def told(self, role: str) -> list[Message]:
        return self._ends[role].poll()

    def close(self) -> None:
        for member in self.crew:
            member.control.close()
        for end in self._ends.values():
            end.close()


@pytest.fixture
def house() -> Iterator[House]:
    found = House()
    yield found
    found.close()


def test_a_worker_counts_again_once_all_servers_hear_it(house: House) -> None:
    house.say("server-0", "absent", worker=1)
    for server in ("server-0", "server-1"):
        assert house.told(server) == [{"kind": "absent", "worker": 1}]
    house.say("server-1", "present", worker=1)
    assert house.told("server-1") == []
    house.say("server-0", "present", worker=1)
    for server in ("server-0", "server-1"):
        assert house.told(server) == [{"kind": "present", "worker": 1}]
    assert house.events == [("worker-1", "absent"), ("worker-1", "back")]


def test_one_that_is_lost_again_meanwhile_is_asked_for_again(house: House) -> None:
    house.say("server-0", "absent", worker=1)
    house.say("server-1", "present", worker=1)
    house.told("server-1")
    house.say("server-1", "absent", worker=1)
    assert house.told("server-1") == [{"kind": "absent", "worker": 1}]
    house.say("server-0", "present", worker=1)
    assert ("worker-1", "back") not in house.events
    house.say("server-1", "present", worker=1)
    assert house.events[-1] == ("worker-1", "back")


def test_a_server_that_begins_to_serve_is_told_whom_nobody_waits_for(house: House) -> None:
    house.say("server-0", "absent", worker=1)
    house.say("server-0", "present", worker=1)
    house.told("server-0")
    house.succession.brief(house.crew["server-0"])  # in its next life
    assert house.told("server-0") == [{"kind": "absent", "worker": 1}]
    house.say("server-1", "present", worker=1)
    assert ("worker-1", "back") not in house.events


def test_one_that_has_trained_is_neither_missed_nor_met_again(house: House) -> None:
    house.say("server-0", "absent", worker=0)
    for worker in ("worker-0", "worker-1"):
        house.crew[worker].state = "trained"
    house.say("server-0", "absent", worker=1)
    for server in ("server-0", "server-1"):
        house.told(server)
        house.say(server, "present", worker=0)
    assert house.told("server-0") == []
    assert house.events == [("worker-0", "absent")]


def test_only_the_life_that_is_meant_is_in_step(house: House) -> None:
    house.crew["standby-0"].life = 1
    house.say("server-0", "in-step", life=0)
    assert not house.crew["standby-0"].in_step
    house.say("server-0", "in-step", life=1)
    assert house.crew["standby-0"].in_step
    house.say("server-0", "alone", number=3, life=1)
    assert not house.crew["standby-0"].in_step
    assert house.told("server-0") == [{"kind": "alone", "number": 3}]


def test_why_a_standby_is_not_in_step_is_told(house: House) -> None:
    house.say("server-0", "in-step", life=0)
    house.succession.check_begun(succession.IN_STEP_WITHIN - 1)
    with pytest.raises(RunFailed, match=r"standby-1 is not in step .* server-1 has not heard of"):
        house.succession.check_begun(succession.IN_STEP_WITHIN + 1)
    house.say("standby-1", "astray", why="cannot reach server-1 at nowhere: no.")
    with pytest.raises(RunFailed, match=r"16 s: cannot reach server-1 at nowhere: no; mend that"):
        house.succession.check_begun(succession.IN_STEP_WITHIN + 1)
    house.say("server-1", "in-step", life=0)
    house.succession.check_begun(succession.IN_STEP_WITHIN + 1)
