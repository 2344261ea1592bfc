from __future__ import annotations

import os
import sys
import time

import pytest

from bench.processes import Failed, free_ports, outputs

# Prints the pid of a child that would outlive it.
LEAVES_A_CHILD = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print(child.pid, flush=True)
"""


def gone(pid: int) -> bool:
    for _ in range(200):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.02)
    return False


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


@pytest.mark.parallel
@pytest.mark.timeout(60, method="signal")
def test_outputs_of_all_and_nothing_left() -> None:
    printed = outputs([python(LEAVES_A_CHILD), python("print('two')")], 30)
    assert printed[1] == "two\n"
    assert gone(int(printed[0]))


@pytest.mark.parallel
@pytest.mark.timeout(60, method="signal")
def test_failure_tells_the_last_words() -> None:
    with pytest.raises(Failed, match=r"(?s)exit code 3.*enough of this"):
        outputs([python("import sys; print('enough of this', file=sys.stderr); sys.exit(3)")], 30)


@pytest.mark.parallel
@pytest.mark.timeout(60, method="signal")
def test_too_late_is_ended() -> None:
    began = time.monotonic()
    with pytest.raises(Failed, match="not done within"):
        outputs([python("import time; time.sleep(60)")], 0.5)
    assert time.monotonic() - began < 20


@pytest.mark.parallel
@pytest.mark.timeout(60, method="signal")
def test_a_role_ends_when_its_standard_input_does() -> None:
    code = "import time; from bench.processes import end_with_starter as e; e(); time.sleep(60)"
    # Its starter is a shell that closes the pipe at once.
    began = time.monotonic()
    outputs([["sh", "-c", f"true | {sys.executable} -c '{code}'; true"]], 30)
    assert time.monotonic() - began < 20


def test_free_ports_differ() -> None:
    assert len(set(free_ports(5))) == 5
