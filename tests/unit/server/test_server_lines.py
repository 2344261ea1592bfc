"""Who speaks for a worker, and for how long one that is not heard is waited for."""

from __future__ import annotations

from typing import Any

import pytest

from paceline.errors import WireError
from paceline.server.lines import STANDBY, Lines


class Line:
    def __init__(self) -> None:
        self.closed = self.silent = False

    def close(self) -> None:
        self.closed = True

    def mute(self, silent: bool) -> None:
        self.silent = silent

    def limit(self, rate: float) -> None:
        self.rate = rate


def lines(lease: float) -> tuple[Lines, list[Any]]:
    """Of two workers."""
    made: list[Any] = [Line(), Line()]
    found = Lines(lease)
    for worker, line in enumerate(made):
        found.claim(line, worker)
    return found, made


def test_one_connection_at_a_time_speaks_for_a_worker() -> None:
    held, (first, _) = lines(1.0)
    other: Any = Line()
    with pytest.raises(WireError, match="another connection"):
        held.claim(other, 0)
    first.close()
    held.claim(other, 0)


def test_a_worker_without_a_line_is_missed_after_its_lease_and_once() -> None:
    held, (first, _) = lines(3.0)
    assert held.missing(None, 0.0) == []
    first.close()
    assert held.missing(None, 10.0) == []
    assert held.missing(None, 12.9) == []
    assert held.missing(None, 13.0) == [0]
    assert held.missing(None, 14.0) == []
    again: Any = Line()
    held.claim(again, 0)
    again.close()
    assert held.missing(None, 20.0) == []
    assert held.missing(None, 23.0) == [0]


def test_without_a_lease_it_is_waited_for() -> None:
    held, (first, _) = lines(0.0)
    first.close()
    assert held.missing(None, 1e9) == []


def test_whose_life_is_over_is_not_missed() -> None:
    held, (first, _) = lines(1.0)
    held.drop(0)
    assert first.closed
    assert held.missing(None, 0.0) == held.missing(None, 9.0) == []


def test_who_is_cut_off_cannot_come_back_until_it_is_over() -> None:
    held, (first, second) = lines(1.0)
    held.harm([0], [], None, 0.0)
    assert first.closed
    assert not second.closed
    new: Any = Line()
    with pytest.raises(WireError, match="on purpose"):
        held.admit(new, 0)
    held.admit(second, 1)
    held.harm([], [], None, 1.0)
    held.admit(new, 0)


def test_a_silent_line_goes_on_if_that_ends_in_time() -> None:
    held, (first, _) = lines(3.0)
    held.harm([], [0], None, 0.0)
    assert first.silent
    assert held.missing(None, 2.0) == []
    with pytest.raises(WireError):
        held.admit(Line(), 0)  # type: ignore[arg-type]
    held.harm([], [], None, 2.5)
    assert not first.silent
    assert not first.closed


def test_a_line_that_is_silent_for_longer_than_the_lease_is_closed() -> None:
    held, (first, _) = lines(3.0)
    held.harm([], [0], None, 1.0)
    assert held.missing(None, 4.0) == [0]
    assert first.closed


def test_a_standby_can_be_cut_off_too() -> None:
    held, (first, _) = lines(3.0)
    standby: Any = Line()
    held.harm([STANDBY], [], standby, 0.0)
    assert standby.closed
    assert not first.closed
    with pytest.raises(WireError):
        held.admit(Line(), STANDBY)  # type: ignore[arg-type]
    held.harm([], [STANDBY], other := Line(), 1.0)  # type: ignore[arg-type]
    assert other.silent
    assert held.missing(other, 4.0) == []  # type: ignore[arg-type]
    assert other.closed


def test_a_new_line_of_a_limited_worker_is_limited_too() -> None:
    held = Lines(0.0, {1: 5e6})
    made: list[Any] = [Line(), Line(), Line()]
    held.claim(made[0], 0)
    held.claim(made[1], 1)
    made[1].close()
    held.claim(made[2], 1)
    assert [getattr(line, "rate", None) for line in made] == [None, 5e6, 5e6]
