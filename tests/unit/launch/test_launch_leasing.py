"""Who asks for samples gets enough for a while: each request costs a worker its core."""

from __future__ import annotations

import pytest

from paceline.launch import leasing
from paceline.launch.crew import Crew, Member
from paceline.launch.leases import LeaseBook
from paceline.launch.leasing import LASTS, Leasing
from paceline.launch.placement import Place
from paceline.transport.control import Control, pair

BATCH, SAMPLES = 10, 10_000


class Desk:
    """A worker that asks, at a pace that the test gives."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        ours, theirs = pair()
        self.worker = Control(theirs)
        self.member = Member("worker-0", "worker", 0, Place(1, (0,)), Control(ours))
        crew = Crew()
        crew.add(self.member)
        self.leasing = Leasing(crew)
        self.leasing.book = LeaseBook(SAMPLES, BATCH, 50, 10, None)
        self.now = 0.0
        monkeypatch.setattr(leasing.time, "monotonic", lambda: self.now)

    def ask(self, done: int, after: float = 0.0) -> int:
        """The batches it gets."""
        self.now += after
        self.leasing.ask(self.member, done)
        lease = self.worker.take("lease")
        assert lease is not None
        return (lease["stop"] - lease["start"]) // BATCH


def test_a_lease_lasts_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(monkeypatch)
    even = desk.ask(0)
    assert even == SAMPLES // BATCH // (2 * 50)
    assert desk.ask(10, after=LASTS / 4) == 40  # which takes it that long
    assert desk.ask(12, after=LASTS) < 40


def test_a_new_life_shows_its_pace_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(monkeypatch)
    desk.ask(0)
    desk.member.leasing = False
    got = desk.ask(5, after=1e-9)  # it was started again, and had finished some before
    assert got <= SAMPLES // BATCH // (2 * 50)
