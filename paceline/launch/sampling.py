"""Twice a second: what every role has used, what the host is doing, and who stands still."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable

from paceline.launch.course import Course
from paceline.launch.crew import Crew, Member
from paceline.measure.clock import Clock
from paceline.measure.gpu import open_gpus
from paceline.measure.resources import Said, Sampler
from paceline.store.folder import RunFolder

EVERY = 0.5  # seconds


class Sampling:
    """`tell` takes a role, what kind of event it is, and the detail."""

    def __init__(
        self,
        course: Course,
        crew: Crew,
        folder: RunFolder,
        clock: Clock,
        tell: Callable[[str, str, str], None],
    ) -> None:
        self._course = course
        self._crew = crew
        self._folder = folder
        self._clock = clock
        self._tell = tell
        self._sampler = Sampler(clock, open_gpus())
        self._next = clock.now()

    def due(self) -> float:
        """Seconds until the next."""
        return max(0.0, self._next - self._clock.now())

    def turn(self) -> None:
        """Sample if it is time. Those that were missed are not made up for."""
        now = self._clock.now()
        if now >= self._next:
            self._next = max(self._next + EVERY, now)
            self.sample()

    def sample(self) -> None:
        living = [m for m in self._crew.left() if m.pid]
        pids = {m.role: m.pid for m in living}
        said = {m.role: _said(m) for m in living}
        self._folder.append_resources(self._sampler.sample(pids, said))
        self._folder.append_host(self._sampler.host())
        self._folder.check()
        for member in living:
            self._look_whether_frozen(member)

    def _look_whether_frozen(self, member: Member) -> None:
        """A role that stands still for longer than its lease is ended: it might wake at any time
        and go on writing where others are by then."""
        now, lease = self._clock.now(), self._course.spec.lease
        if not self._sampler.frozen(member.pid):
            if member.frozen_at is not None:
                self._tell(member.role, "thawed", f"after {now - member.frozen_at:.1f} s")
            member.frozen_at = None
        elif member.frozen_at is None:
            member.frozen_at = now
            self._tell(member.role, "frozen", "its process was stopped")
        elif lease and now - member.frozen_at >= lease:
            with contextlib.suppress(ProcessLookupError):
                os.kill(member.pid, signal.SIGKILL)

    def close(self) -> None:
        self._sampler.close()


def _said(member: Member) -> Said:
    """By the role itself; and what was said on its control connection."""
    told, control = member.progress, member.control.counts.from_peer("supervisor")
    return Said(told.sent, told.received, (*told.traffic, control), told.own)
