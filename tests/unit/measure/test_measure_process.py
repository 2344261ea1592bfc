"""What the system says of a process, without its help."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from paceline.measure.process import Processes


def test_a_process_is_stopped_until_it_goes_on() -> None:
    processes = Processes()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        assert processes.state(process.pid) == ""
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)
        assert processes.state(process.pid) == "stopped"
        process.send_signal(signal.SIGCONT)
        os.waitid(os.P_PID, process.pid, os.WCONTINUED)
        assert processes.state(process.pid) == ""
        process.kill()
    assert processes.state(process.pid) == ""
    assert processes.used(process.pid) is None


def test_what_a_process_has_used_only_grows() -> None:
    processes = Processes()
    before = processes.used(os.getpid())
    sum(range(3_000_000))
    after = processes.used(os.getpid())
    assert before is not None
    assert after is not None
    assert after.cpu > before.cpu
    assert after.delay >= before.delay
