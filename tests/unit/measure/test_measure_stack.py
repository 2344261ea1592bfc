"""Stacks: who is asked answers, who would die of the question is not asked, who cannot is told of
by the kernel."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import sysconfig
import time
from typing import Any

import pytest

from paceline.measure import process, stack
from paceline.measure.stack import Frame, innermost

STDLIB = sysconfig.get_path("stdlib")
OURS = stack.__file__.replace("measure/stack.py", "worker/loop.py")
WRITTEN = f"""Thread 0x00007f6d2f48e6c0 (most recent call first):
  File "/home/me/loader.py", line 7 in batch
  File "/opt/data/prefetch.py", line 80 in work
  File "{STDLIB}/threading.py", line 1002 in _bootstrap

Current thread 0x00007f6d2ffc6b80 (most recent call first):
  File "{STDLIB}/queue.py", line 180 in get
  File "{OURS}", line 54 in train
  File "/home/me/mine.py", line 12 in forward
  File "<stdin>", line 9 in <module>
"""


def test_where_it_is_and_who_of_the_users_own_had_it_go_there() -> None:
    here, mine = innermost(WRITTEN)
    assert str(here) == "get (queue.py, line 180)"
    assert str(mine) == "forward (mine.py, line 12)"


def test_of_another_thread_if_it_goes_through_that_file() -> None:
    assert innermost(WRITTEN, "data/prefetch.py") == [Frame("/home/me/loader.py", 7, "batch")]
    assert innermost(WRITTEN, "data/elsewhere.py") == innermost(WRITTEN)


@pytest.mark.parametrize("text", ["", "torn", "Current thread 0x1 (most recent call first):\n"])
def test_what_is_no_stack_is_none(text: str) -> None:
    assert innermost(text) == []


def test_one_that_would_die_of_the_signal_is_not_asked() -> None:
    with subprocess.Popen(["sleep", "10"]) as other:
        assert not stack.ask(other.pid)
        time.sleep(0.05)
        assert other.poll() is None
        other.kill()
    assert not stack.ask(other.pid)  # nor one that is gone


def test_one_that_answers(eventually: Any) -> None:
    program = (
        "import os, sys, time; from paceline.measure import stack; stack.answer(1)\n"
        "def busy():\n os.write(1, b'up\\n'); time.sleep(20)\nbusy()"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"up\n"
        assert stack.ask(other.pid)
        told = [other.stdout.readline().decode() for _ in range(2)]
        assert "line 3 in busy" in told[1]
        other.kill()


def test_the_kernel_tells_of_one_that_is_stopped(eventually: Any) -> None:
    with subprocess.Popen(["sleep", "10"]) as other:
        known = process.Process(other.pid)
        assert known.state == ""
        os.kill(other.pid, signal.SIGSTOP)
        eventually(lambda: known.state == "stopped", 5)
        assert f"thread {other.pid} (sleep): T (stopped)" in stack.kernel_view(other.pid)
        other.kill()
    assert known.state == ""
    assert stack.kernel_view(other.pid) == ""
