"""A role whose clock is set off on purpose is aligned, over a real control connection."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from types import SimpleNamespace
from typing import cast

import pytest

from paceline.launch.aligning import TIMES, Clocks
from paceline.launch.crew import Member
from paceline.measure.clock import Clock
from paceline.measure.offset import Offset, aligned, clock_id
from paceline.transport.control import Control, pair

OFF = 1234  # seconds
ROLE = """
import socket, sys, time
from paceline.launch.aligning import keep_aligned
from paceline.measure.clock import Clock
from paceline.transport.control import Control
control = Control(socket.socket(fileno=int(sys.argv[1])))
clock = Clock(float(sys.argv[2]))
keep_aligned(control, clock, sys.argv[3])
control.send("now", time=clock.now())
"""


def conversation(start: list[str], clock: Clock) -> tuple[list[Offset], float, float, int]:
    """What a role in such a process tells: offsets, its time, ours then, and how often it asked."""
    ours, theirs = pair()
    command = [*start, sys.executable, "-c", ROLE, str(theirs.fileno()), str(clock.t0)]
    process = subprocess.Popen([*command, clock_id() or ""], pass_fds=[theirs.fileno()])
    theirs.close()
    control = Control(ours)
    member = cast(Member, SimpleNamespace(control=control, offsets=[]))
    clocks, asked, until = Clocks(clock), 0, time.monotonic() + 60
    try:
        while time.monotonic() < until:
            control._stirs(1, 0.5)
            for message in control.poll():
                if message["kind"] == "now":
                    return member.offsets, message["time"], clock.now(), asked
                asked += message["kind"] == "clock"
                assert clocks.hear(member, message)
            assert not control.ended, "the role failed"
        raise TimeoutError
    finally:
        process.kill()
        process.wait()
        control.close()


def test_a_role_with_the_same_clock_asks_nothing() -> None:
    if clock_id() is None:
        pytest.skip("this system does not tell whose clock is whose")
    offsets, told, now, asked = conversation([], Clock(time.monotonic()))
    assert (offsets, asked) == ([], 0)
    assert told <= now


def test_a_role_in_another_time_namespace_is_aligned() -> None:
    start = ["unshare", "--time", f"--monotonic={OFF}", "--fork"]
    if not shutil.which("unshare") or subprocess.run([*start, "true"], check=False).returncode:
        pytest.skip("time namespaces are not permitted here")
    offsets, told, now, asked = conversation(start, Clock(time.monotonic()))
    assert asked == TIMES
    assert len(offsets) == 1
    assert abs(offsets[0].seconds + OFF) <= offsets[0].error < 5
    assert told > OFF
    assert now - 5 < aligned(told, offsets) <= now + offsets[0].error


def test_an_answer_is_for_whoever_asked() -> None:
    """A server that polls all its messages leaves it."""
    ours, theirs = (Control(end) for end in pair())
    ours.send("time", heard=1.0)
    ours.send("stop")
    assert [message["kind"] for message in theirs.poll()] == ["stop"]
    assert theirs.wait("time", seconds=5)["heard"] == 1.0
    for end in (ours, theirs):
        end.close()
