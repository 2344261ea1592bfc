"""Twice a second: what every role has used, and what the host is doing."""

from __future__ import annotations

from paceline.launch.beat import Beat
from paceline.launch.crew import Crew, Member
from paceline.measure.clock import Clock
from paceline.measure.gpu import open_gpus
from paceline.measure.resources import Said, Sampler
from paceline.store.folder import RunFolder

EVERY = 0.5  # seconds


class Sampling:
    """Writes records of living roles and of the host to the run's folder."""

    def __init__(self, crew: Crew, folder: RunFolder, clock: Clock) -> None:
        self._crew = crew
        self._folder = folder
        self._sampler = Sampler(clock, open_gpus())
        self.beat = Beat(EVERY)

    def turn(self) -> None:
        """Sample if it is time."""
        if self.beat.here():
            self.sample()

    def sample(self) -> None:
        living = [m for m in self._crew.left() if m.pid]
        pids = {m.role: m.pid for m in living}
        said = {m.role: _said(m) for m in living}
        self._folder.append_resources(self._sampler.sample(pids, said))
        self._folder.append_host(self._sampler.host())
        self._folder.check()

    def close(self) -> None:
        self._sampler.close()


def _said(member: Member) -> Said:
    """By the role itself; and what was said on its control connection."""
    told, control = member.progress, member.control.counts.from_peer("supervisor")
    return Said(told.sent, told.received, (*told.traffic, control), told.own)
