"""A run is stopped by one interrupt to the very process that launched it, and by no other."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from web_samples import a_run

from paceline.errors import RequestError
from paceline.store.folder import RunFolder
from paceline.web.stop import Stops

COUNTS = """
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])  # one that comes early waits its turn
print("there", flush=True)
for _ in range(2):
    signal.sigwait([signal.SIGINT])
    print("asked", flush=True)
"""


@pytest.fixture
def launcher() -> Iterator[subprocess.Popen[str]]:
    """A process that tells each interrupt."""
    made = subprocess.Popen([sys.executable, "-c", COUNTS], stdout=subprocess.PIPE, text=True)
    assert made.stdout is not None
    assert made.stdout.readline() == "there\n"
    yield made
    made.kill()
    made.wait()


@pytest.fixture
def folder(runs: Path, launcher: subprocess.Popen[str]) -> RunFolder:
    made = a_run(runs, "x")
    made.write_live("running", launcher.pid, [])
    return made


def change(folder: RunFolder, **launcher: object) -> None:
    path = folder.path / "roles.json"
    live = json.loads(path.read_text())
    live["launcher"] |= launcher
    path.write_text(json.dumps(live))


def test_the_launcher_is_asked_once(folder: RunFolder, launcher: subprocess.Popen[str]) -> None:
    stops = Stops()
    assert stops.ask(folder.path).startswith("Asked")
    assert launcher.stdout is not None
    assert launcher.stdout.readline() == "asked\n"
    assert "already" in stops.ask(folder.path)  # a second interrupt would insist
    launcher.send_signal(2)
    assert launcher.communicate(timeout=20)[0] == "asked\n"


@pytest.mark.parametrize(
    ("launcher_is", "said"),
    [
        ({"created": 1.0}, "no launcher any more"),  # another process has its number now
        ({"pid": 2**22 + 1}, "no launcher any more"),
        ({"pid": -1}, "no launcher any more"),
        ({"host": "elsewhere"}, "runs on elsewhere"),
        ({"host": None}, "cannot be stopped"),
    ],
)
def test_nobody_else_is(folder: RunFolder, launcher_is: dict[str, object], said: str) -> None:
    change(folder, **launcher_is)
    with pytest.raises(RequestError, match=said):
        Stops().ask(folder.path)


def test_what_is_over_is_not_stopped(folder: RunFolder) -> None:
    folder.write_live("done", os.getpid(), [])
    with pytest.raises(RequestError, match="over already: done"):
        Stops().ask(folder.path)
