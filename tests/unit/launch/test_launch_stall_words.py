"""What a stall is called."""

from __future__ import annotations

from dataclasses import replace

import pytest

from paceline.launch.stall_words import DOING, listed, meanwhile, over, told
from paceline.launch.stalls import OTHERS, Over, Sign, Stall
from paceline.transport import slate

COMPUTES = Sign(role="worker-1", doing=slate.COMPUTE, round=812)
STOPPED = replace(COMPUTES, state="stopped", held_for=5.2)
ALONE = Stall(roles=("worker-1",), sign=COMPUTES, seconds=5.04)


def test_everything_that_stands_on_a_slate_has_words() -> None:
    assert sorted(DOING) == list(range(slate.RESTORE + 1))


def test_one_that_is_stopped() -> None:
    stall = replace(ALONE, sign=STOPPED, waiting=("worker-0", "worker-2"))
    assert told(stall, "round") == (
        "has been stopped (SIGSTOP) for 5.2 s, while computing (forward or backward) in round 812; "
        "worker-0 and worker-2 wait for it"
    )
    assert meanwhile(STOPPED, ("worker-0",), "round") == (
        ", while computing (forward or backward) in round 812, and worker-0 waited for it"
    )


@pytest.mark.parametrize(
    ("cpu", "words"),
    [(None, ""), (0.003, ", and uses no CPU"), (0.98, ", and uses 98 % of a core")],
)
def test_one_that_is_at_work(cpu: float | None, words: str) -> None:
    stall = replace(ALONE, waiting=("worker-0",))
    assert told(stall, "step", cpu) == (
        f"has been computing (forward or backward) for 5.0 s in step 812{words}; "
        "worker-0 waits for it"
    )


def test_several_that_do_the_same() -> None:
    builds = Sign(role="worker-0", doing=slate.BUILD)
    stall = Stall(roles=("worker-0", "worker-1"), sign=builds, seconds=7.0, waiting=("evaluator",))
    assert told(stall, "round", 0.0) == (
        "worker-0 and worker-1 have been building its model and data for 7.0 s; "
        "evaluator waits for them"
    )


def test_one_that_waits_for_one_that_goes_on() -> None:
    sign = Sign(role="worker-0", doing=slate.WAIT, round=812, waits=("worker-1",))
    stall = Stall(roles=("worker-0",), sign=sign, seconds=10.0, on=(COMPUTES,))
    assert told(stall, "round", 0.0) == (
        "has been waiting for worker-1 for 10.0 s in round 812, which goes on "
        "(computing (forward or backward) in round 812)"
    )


def test_those_that_wait_for_each_other() -> None:
    one = Sign(role="worker-1", doing=slate.WAIT, round=812, waits=("server-0",))
    two = Sign(role="server-0", doing=slate.SERVE, waits=("worker-1",))
    stall = Stall(roles=("worker-1", "server-0"), sign=one, seconds=5.0, on=(one, two))
    assert told(stall, "round") == (
        "worker-1 and server-0 have been waiting for each other for 5.0 s in round 812: "
        "what one of them sent has not arrived"
    )


def test_other_ways_to_stand_still() -> None:
    def said(sign: Sign) -> str:
        return told(replace(ALONE, sign=sign), "round")

    arrived = replace(COMPUTES, doing=slate.WAIT, waits=(OTHERS,))
    assert said(arrived) == (
        "has been waiting for the others, who have all arrived, for 5.0 s in round 812"
    )
    assert said(replace(arrived, waits=("worker-9",))) == (
        "has been waiting for worker-9 for 5.0 s in round 812"
    )
    assert said(replace(COMPUTES, doing=slate.WRITE, state="asleep")) == (
        "has been writing to disk for 5.0 s in round 812, asleep in the kernel, where no signal "
        "reaches it"
    )
    assert said(Sign(role="server-0", doing=slate.SERVE)) == (
        "has been in one turn of its loop, hearing nobody, for 5.0 s"
    )
    assert said(Sign(role="server-0", doing=slate.SERVE, state="traced", held_for=5.0)) == (
        "has been stopped by a debugger for 5.0 s, while serving"
    )


def test_that_it_goes_on() -> None:
    assert over(Over(roles=("worker-1",), seconds=12.1, waited=())) == "after 12.1 s"
    both = Over(roles=("worker-1", "worker-2"), seconds=12.1, waited=("worker-0",))
    assert over(both) == "worker-1 and worker-2, after 12.1 s; worker-0 waited for them"


def test_of_very_many_some_are_named() -> None:
    assert listed(["worker-0"]) == "worker-0"
    assert listed([f"worker-{n}" for n in range(9)]) == (
        "worker-0, worker-1, worker-2, worker-3 and 5 more"
    )
