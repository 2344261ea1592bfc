"""What every test may use, and the promise every parallel test keeps: nothing of a run remains."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import settings

from paceline.store.steps import HEADER, ROW
from tools.leftovers import PROC, kept_nurseries, leave_mark, leftovers, processes

MARK = leave_mark("PACELINE_TEST_SESSION")

# How long an example takes depends on the machine, and on what has to be compiled first. Each day
# others are drawn; make thorough draws many.
settings.register_profile("daily", deadline=None, max_examples=20)
settings.register_profile("thorough", deadline=None, max_examples=400)
settings.load_profile("daily")

HARD_LIMIT = 60  # seconds; the longest a parallel test may take
SHM = Path("/dev/shm")
ALONE = ("tests/faults/", "tests/parallel/", "tests/truth/")  # as the Makefile has them

Found = TypeVar("Found")


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A parallel test without a time limit of its own gets one, so that none is forgotten.

    Of one that is marked `matrix(n)` n cases are for every day: spread out, and not all of them
    first, or last, in any of its dimensions. The rest are `thorough`.
    """
    matrices: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("matrix"):
            matrices.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for cases in matrices.values():
        (count,) = next(cases[0].iter_markers("matrix")).args
        daily: set[int] = set()
        for n in range(min(count, len(cases))):
            at = (n * len(cases) // count + n) % len(cases)
            while at in daily:
                at = (at + 1) % len(cases)
            daily.add(at)
        for n, case in enumerate(cases):
            if n not in daily:
                case.add_marker("thorough")
    for item in items:
        if item.get_closest_marker("parallel") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(HARD_LIMIT, method="signal"))
        if item.get_closest_marker("alone") and not item.nodeid.startswith(ALONE):
            raise pytest.UsageError(f"{item.nodeid} is alone where make test does not look for it.")


# What is left.


def found_now() -> Counter[str]:
    """Processes and segments of runs, and all files in /dev/shm."""
    return Counter(leftovers(MARK) + [str(path) for path in SHM.iterdir()])


@pytest.fixture(autouse=True)
def _nothing_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """After a parallel test no process, no segment and no file in /dev/shm remains."""
    if request.node.get_closest_marker("parallel") is None or not PROC.is_dir():
        yield
        return
    before = found_now()  # a test of smaller parts may have made segments in this process
    there = set(processes(MARK))  # a browser, for the tests of a file
    yield
    with contextlib.suppress(AssertionError):
        eventually(lambda: not found_now() - before, 3)
    left = found_now() - before
    for pid in set(processes(MARK)) - there - kept_nurseries():  # let no later test pay for it
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    assert not left


# Waiting.


def eventually(look: Callable[[], Found], seconds: float, what: str = "") -> Found:
    """The first true thing that `look` sees; AssertionError if it sees none in time."""
    deadline = time.monotonic() + seconds
    while True:
        if found := look():
            return found
        assert time.monotonic() < deadline, f"not within {seconds} s: {what or look}"
        time.sleep(0.01)


@pytest.fixture(name="eventually")
def _eventually() -> Callable[..., Any]:
    return eventually


# Runs and the command line.


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A folder for runs."""
    return tmp_path / "runs"


class Command:
    """A `paceline` command under way, and the run it makes."""

    def __init__(self, process: subprocess.Popen[bytes], cwd: Path, tag: str, out: str) -> None:
        self.process = process
        self.pid = process.pid
        self._runs = cwd / out
        self._before = self._folders()
        self._streams = cwd / f"{tag}.out", cwd / f"{tag}.err"

    @property
    def stdout(self) -> str:
        return self._streams[0].read_text()

    @property
    def stderr(self) -> str:
        return self._streams[1].read_text()

    def _folders(self) -> set[Path]:
        if not self._runs.is_dir():
            return set()
        return {path for path in self._runs.iterdir() if not path.name.startswith(".")}

    @property
    def folder(self) -> Path:
        """The run's folder, once there is one."""
        return eventually(lambda: next(iter(self._folders() - self._before), None), 20, "a folder")

    def live(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "roles.json").read_text())
        return found

    def pids(self) -> dict[str, int]:
        return {role["role"]: role["pid"] for role in self.live()["roles"] if role["pid"]}

    def has_steps(self, role: str) -> bool:
        path = self.folder / "steps" / f"{role}.steps"
        return path.is_file() and path.stat().st_size >= len(HEADER) + ROW

    def in_the_middle(self, *more: str) -> dict[str, int]:
        """Wait until every worker has taken steps and the roles in `more` live: their pids."""

        def look() -> dict[str, int]:
            assert self.process.poll() is None, f"it ended too early: {self.stderr}"
            pids = self.pids()
            workers = [role for role in pids if role.startswith("worker-")]
            steps = bool(workers) and all(self.has_steps(role) for role in workers)
            return pids if steps and set(more) <= pids.keys() else {}

        return eventually(look, 30, f"steps of every worker; stderr so far: {self.stderr}")

    def wait(self, seconds: float) -> int:
        """The exit code; AssertionError if it takes longer."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {seconds} s: {self.stderr}") from None


class Cli:
    """Runs `paceline` as a user would, in a folder of the test's own."""

    def __init__(self, cwd: Path) -> None:
        self.cwd = cwd
        self._commands: list[Command] = []

    def start(self, *arguments: str | Path, out: str = "runs") -> Command:
        """Begin a command whose runs go to `out`."""
        tag = f"command-{len(self._commands)}"
        with (
            (self.cwd / f"{tag}.out").open("wb") as stdout,
            (self.cwd / f"{tag}.err").open("wb") as stderr,
        ):
            process = subprocess.Popen(
                [sys.executable, "-m", "paceline.cli", *map(str, arguments)],
                cwd=self.cwd,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                env={**os.environ, "PACELINE_RUNS": out, "COLUMNS": "300"},
            )
        self._commands.append(Command(process, self.cwd, tag, out))
        return self._commands[-1]

    def run(self, *arguments: str | Path, seconds: float = 50) -> Command:
        """To its end."""
        command = self.start(*arguments)
        command.wait(seconds)
        return command

    def listed(self) -> list[dict[str, Any]]:
        """What `paceline runs` says."""
        command = self.run("runs", "--json")
        assert command.process.returncode == 0, command.stderr
        found: list[dict[str, Any]] = json.loads(command.stdout)
        return found

    def shown(self) -> dict[str, Any]:
        """What `paceline show last` says."""
        command = self.run("show", "last", "--json")
        assert command.process.returncode == 0, command.stderr
        found: dict[str, Any] = json.loads(command.stdout)
        return found

    def end(self) -> None:
        for command in self._commands:
            if command.process.poll() is None:
                command.process.kill()
                command.process.wait()


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[Cli]:
    command_line = Cli(tmp_path)
    yield command_line
    command_line.end()
