"""Probes run in a process of their own: what hangs, crashes or eats memory there ends there.

    parent ──stdin──► {"probes": [...], "asked": {...}}
    child  ──stdout─► one line a probe: {"probe", "found"} or {"probe", "fault"}

The child has a process group of its own, so Ctrl-C reaches the parent alone, which ends all of the
group; and it dies with the parent, whatever that dies of.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from pydantic import TypeAdapter

from paceline import env
from paceline.doctor.asked import Asked
from paceline.doctor.probes import BY_NAME, Probe
from paceline.launch.nursery import die_with_parent

CHUNK = 1 << 16


class NotMeasured(Exception):
    """A probe told nothing; the message says why. `over`: its process is gone, too."""

    def __init__(self, reason: str, *, over: bool) -> None:
        super().__init__(reason)
        self.over = over


class Child:
    """A process that runs some probes, one after the other."""

    def __init__(self, probes: Sequence[Probe], asked: Asked) -> None:
        self._asked = asked
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the child
        # As a role's environment is: what is measured is what a worker will have.
        self._process = subprocess.Popen(
            [sys.executable, "-m", "paceline.doctor.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            env=env.for_roles(),
            process_group=0,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._out = self._process.stdout.fileno()
        self._rest = b""
        request = {"probes": [probe.name for probe in probes], "asked": asdict(asked)}
        with contextlib.suppress(BrokenPipeError):  # it is gone; whoever waits for it hears why
            self._process.stdin.write(json.dumps(request).encode())
            self._process.stdin.close()

    def next(self, probe: Probe) -> Any:
        """What this probe, the next in the order given, has found."""
        limit = probe.limit(self._asked.quick)
        line = self._line(limit)
        if line is None:
            raise NotMeasured(f"it took longer than {limit:.0f} s", over=True)
        if not line:
            raise NotMeasured(self._why_ended(), over=True)
        told = json.loads(line)
        if "fault" in told:
            raise NotMeasured(told["fault"], over=False)
        return TypeAdapter(probe.record).validate_python(told["found"])

    def close(self) -> None:
        """End it and all that it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._said):
            assert stream is not None
            with contextlib.suppress(OSError):
                stream.close()

    def _line(self, seconds: float) -> bytes | None:
        """The next line; empty if there will be none, None if it does not come in time."""
        deadline = time.monotonic() + seconds
        while b"\n" not in self._rest:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._out], [], [], left)[0]:
                return None
            read = os.read(self._out, CHUNK)
            if not read:
                return b""
            self._rest += read
        line, _, self._rest = self._rest.partition(b"\n")
        return line

    def _why_ended(self) -> str:
        code = self._process.wait()
        self._said.seek(0)
        last = self._said.read().decode(errors="replace").strip().rpartition("\n")[2]
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        return f"its process ended with {how}" + (f": {last}" if last else "")


def main() -> None:
    """The child: measure what is asked, and tell."""
    die_with_parent()
    request = json.loads(sys.stdin.read())
    asked = Asked(**request["asked"])
    # A task of the user's own may print; standard output is for what was found.
    with os.fdopen(os.dup(1), "w") as out:
        os.dup2(2, 1)
        for name in request["probes"]:
            out.write(json.dumps({"probe": name, **_measured(BY_NAME[name], asked)}) + "\n")
            out.flush()


def _measured(probe: Probe, asked: Asked) -> dict[str, Any]:
    try:
        measure = importlib.import_module(probe.module).measure
        found = measure(asked, probe.length(asked.quick))
    except Exception as wrong:  # noqa: BLE001 - whatever it is, it is told, and the next one goes on
        said = " ".join(str(wrong).split()).rstrip(".")
        return {"fault": said or type(wrong).__name__}
    return {"found": TypeAdapter(probe.record).dump_python(found, mode="json")}


if __name__ == "__main__":
    main()
