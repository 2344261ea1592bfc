"""Beats: at full parts of a second, none made up for, and as early as somebody else is awake."""

from __future__ import annotations

import pytest

from paceline.launch import beat
from paceline.launch.beat import LATE, Beat


class Now:
    def __init__(self, now: float) -> None:
        self.now = now

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Now:
    now = Now(100.3)
    monkeypatch.setattr(beat, "time", now)
    return now


def test_the_first_is_at_once_and_the_others_at_full_parts_of_a_second(clock: Now) -> None:
    beats = Beat(0.5)
    assert beats.due() == 0.0
    assert beats.here()
    assert not beats.here()
    clock.now = 100.49
    assert not beats.here()
    clock.now = 100.5  # nobody has to wake up yet, but who is awake need not wake again
    assert beats.due() == pytest.approx(LATE)
    assert beats.here()
    assert beats.due() == pytest.approx(0.5 + LATE)


def test_those_that_were_missed_are_over(clock: Now) -> None:
    beats = Beat(0.25)
    assert beats.here()
    clock.now = 103.1
    assert beats.here()
    assert not beats.here()
    assert beats.due() == pytest.approx(0.15 + LATE)
