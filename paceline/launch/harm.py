"""Does to a run what `--inject` asked for; `inject.py` says when."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path

from paceline.files import pretend_full
from paceline.launch.crew import Crew, Member
from paceline.launch.inject import Act, Schedule
from paceline.measure.clock import Clock
from paceline.server.lines import STANDBY
from paceline.spec.inject import LINES, injection

LOOK = 0.1  # seconds between looks at what is due
DISK = "disk"  # stands for a role in events of the run's folder
SIGNALS = {
    ("kill", True): signal.SIGKILL,
    ("stop", True): signal.SIGSTOP,
    ("stop", False): signal.SIGCONT,
}


class Harm:
    """The supervisor's hand for these faults. `tell` records an event: role, kind, detail."""

    def __init__(
        self,
        faults: Sequence[str],
        crew: Crew,
        folder: Path,
        tell: Callable[[str, str, str], None],
    ) -> None:
        self._schedule = Schedule([injection(text) for text in faults])
        self._any = bool(faults)
        self._crew = crew
        self._folder = folder
        self._tell = tell
        self._clock: Clock | None = None

    def begin(self, clock: Clock) -> None:
        """Training begins: this clock says how long ago."""
        self._clock = clock
        self.turn()

    def brief(self, member: Member) -> None:
        """Tell a role what concerns it; a worker before it trains, so that nothing is late."""
        if self._any and member.kind == "worker":
            member.control.send("harm", **self._schedule.told(member.role))
        elif self._any and member.kind == "server":
            lines = self._schedule.lines(member.role)
            harmed = {kind: [_number(role) for role in roles] for kind, roles in lines.items()}
            now = {"slow": self._schedule.slow(member.role), "full": self._schedule.full}
            member.control.send("harm", **now, **harmed)

    def due(self) -> float:
        """Seconds after which to look again."""
        return LOOK if self._any else float("inf")

    def turn(self) -> None:
        """Do what is due."""
        if not self._any or self._clock is None:
            return
        living = {m.role: m.progress.step for m in self._crew.left() if m.pid}
        for act in self._schedule.due(self._clock.now(), living):
            self._do(act)

    def did(self, number: int) -> None:
        """A worker is about to do this to itself."""
        if self._clock is not None and self._schedule.waits(number):
            act = self._schedule.begun(number, self._clock.now())
            self._tell(act.fault.role, "injected", act.fault.text)

    def _do(self, act: Act) -> None:
        fault = act.fault
        if number := SIGNALS.get((fault.kind, act.begins)):
            self._signal(fault.role, number)
        if act.begins:  # while the disk still has room for it
            self._tell(fault.role or DISK, "injected", fault.text)
        harmed = fault.peer if fault.kind in LINES else fault.role
        if (server := self._crew.get(harmed)) is not None and server.kind == "server":
            self.brief(server)
        if fault.kind in ("slow", "disk-full"):
            pretend_full(self._folder, self._schedule.full)
            for member in (*self._crew.workers(), *self._crew.servers()):
                self.brief(member)

    def _signal(self, role: str, number: signal.Signals) -> None:
        member = self._crew.get(role)
        if member is not None and member.pid and not member.gone:
            with contextlib.suppress(ProcessLookupError):
                os.kill(member.pid, number)

    def close(self) -> None:
        """The run is over: tell what never happened. The disk has room again."""
        pretend_full(self._folder, False)
        for fault in self._schedule.missed() if self._clock is not None else ():
            self._tell(fault.role or DISK, "missed", f"{fault.text}: the run was over before")


def _number(role: str) -> int:
    """As a server knows who is at the other end of a connection."""
    kind, _, number = role.partition("-")
    return int(number) if kind == "worker" else STANDBY
