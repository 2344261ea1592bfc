"""Processes of a bench: run side by side, with a time limit, and none left behind.

Needs the standard library alone: contenders import it in environments of their own.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
GRACE = 5.0
LAST_WORDS = 3000


class Failed(Exception):
    """A process ended badly or not in time."""


def outputs(
    commands: Sequence[Sequence[str]],
    seconds: float,
    lent: Sequence[str] = (),
    settings: Mapping[str, str] = os.environ,
) -> list[str]:
    """What each command printed, all run at once from the project's folder.

    They can import the project, and what lies in the folders `lent` to them; `settings` is the rest
    of their environment. When this returns or raises, they and whatever they started have ended.
    """
    started: list[subprocess.Popen[bytes]] = []
    environment = {**settings, "PYTHONPATH": os.pathsep.join([str(ROOT), *lent])}
    deadline = time.monotonic() + seconds
    with contextlib.ExitStack() as held:
        # Files, not pipes: a child that stays would keep a pipe open and us waiting.
        errors = held.enter_context(tempfile.TemporaryFile())
        printed = [held.enter_context(tempfile.TemporaryFile()) for _ in commands]
        lifeline = held.enter_context(_lifeline())
        for command, out in zip(commands, printed, strict=True):
            process = _start(command, environment, lifeline, out.fileno(), errors.fileno())
            held.callback(_end, process)
            started.append(process)
        for process in started:
            try:
                code = process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                words = _last_words(errors.fileno())
                raise Failed(f"not done within {seconds:.0f} s\n{words}") from None
            if code:
                raise Failed(f"exit code {code}\n{_last_words(errors.fileno())}")
        return [_read(out.fileno()) for out in printed]


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on, all different."""
    with contextlib.ExitStack() as held:
        probes = [held.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]


def end_with_starter() -> None:
    """End this process when the bench is gone: its end of our standard input is then closed."""

    def watch() -> None:
        # Not sys.stdin, whose lock this thread would still hold when the process ends.
        while os.read(0, 1):
            pass
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(GRACE)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def pin(index: int, workers: int) -> None:
    """To a core of its own, if there is exactly one for each worker."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) == workers:
        os.sched_setaffinity(0, {cores[index]})


@contextlib.contextmanager
def _lifeline() -> Iterator[int]:
    """A pipe nobody writes to; it closes when this process ends, however it ends."""
    read, write = os.pipe()
    try:
        yield read
    finally:
        os.close(read)
        os.close(write)


def _start(
    command: Sequence[str], environment: dict[str, str], lifeline: int, out: int, errors: int
) -> subprocess.Popen[bytes]:
    # A session of its own, so that it can be ended together with all it starts.
    return subprocess.Popen(
        command,
        stdin=lifeline,
        stdout=out,
        stderr=errors,
        cwd=ROOT,
        env=environment,
        start_new_session=True,
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    for sent in (signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + GRACE
        # The group outlives its leader as long as anybody is in it.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, sent)
            while time.monotonic() < deadline:
                process.poll()
                os.killpg(process.pid, 0)
                time.sleep(0.02)
    process.wait()


def _read(file: int) -> str:
    return os.pread(file, os.fstat(file).st_size, 0).decode(errors="replace")


def _last_words(errors: int) -> str:
    return _read(errors)[-LAST_WORDS:]
