"""Seconds and samples to a target: a line between scores, and never being there is an answer."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.diagnose.target import NotReached, Reached, Scored, to_target


def curve(*values: float) -> list[Scored]:
    """A score each 10 seconds and 1,000 samples, the first after them."""
    return [
        Scored(seconds=10 * i, samples=1000 * i, value=value)
        for i, value in enumerate(values, start=1)
    ]


def reached(found: Reached | NotReached) -> Reached:
    assert isinstance(found, Reached)
    return found


def test_between_two_scores_it_is_a_line() -> None:
    found = reached(to_target(curve(0.5, 0.7, 0.9, 0.95), 0.85))
    assert found.seconds == pytest.approx(27.5)
    assert found.samples == pytest.approx(2750)
    assert (found.earliest, found.latest, found.stayed) == (20, 30, True)


def test_a_loss_falls() -> None:
    found = reached(to_target(curve(2.0, 1.0, 0.5), 0.75, falling=True))
    assert found.seconds == pytest.approx(25)
    assert to_target(curve(2.0, 1.0), 0.75, falling=True) == NotReached(
        seconds=20, samples=2000, best=1.0
    )


def test_a_score_that_meets_it_exactly_is_when() -> None:
    assert reached(to_target(curve(0.5, 0.8, 0.9), 0.8)).seconds == 20


def test_the_first_score_is_the_first_that_is_known() -> None:
    found = reached(to_target(curve(0.9, 0.95), 0.8))
    assert (found.seconds, found.samples, found.earliest, found.latest) == (10, 1000, 0, 10)


def test_not_reached_tells_what_was_spent_and_the_best() -> None:
    assert to_target(curve(0.5, 0.8, 0.7), 0.9) == NotReached(seconds=30, samples=3000, best=0.8)
    nothing = to_target([], 0.9)
    assert isinstance(nothing, NotReached)
    assert nothing.seconds == 0
    assert math.isnan(nothing.best)


@pytest.mark.parametrize("later", [0.7, math.nan])
def test_falling_back_is_told(later: float) -> None:
    found = reached(to_target(curve(0.5, 0.9, later, 0.95), 0.8))
    assert found.latest == 20
    assert not found.stayed


def test_scores_that_are_no_numbers_reach_nothing() -> None:
    assert to_target(curve(math.nan, math.inf), 0.5) == NotReached(
        seconds=20, samples=2000, best=pytest.approx(math.nan, nan_ok=True)
    )
    assert reached(to_target(curve(0.4, math.nan, 0.8), 0.6)).seconds == pytest.approx(20)


def test_the_order_is_that_of_the_clock() -> None:
    with pytest.raises(ValueError, match="order"):
        to_target(curve(0.5, 0.6)[::-1], 0.9)


@given(values=st.lists(st.floats(0, 1), min_size=1, max_size=20), target=st.floats(0, 1))
def test_accuracy_and_error_rate_tell_the_same(values: list[float], target: float) -> None:
    """Turned upside down it is the same moment, and it lies between the scores around it."""
    up = to_target(curve(*values), target)
    down = to_target(curve(*(-value for value in values)), -target, falling=True)
    if isinstance(up, NotReached):
        assert max(values) == up.best < target
        assert isinstance(down, NotReached)
    else:
        assert up.earliest <= up.seconds <= up.latest
        assert reached(down).seconds == pytest.approx(up.seconds)


@given(
    values=st.lists(st.floats(0, 1), min_size=2, max_size=20),
    easy=st.floats(0, 1),
    hard=st.floats(0, 1),
)
def test_more_is_never_reached_earlier(values: list[float], easy: float, hard: float) -> None:
    easy, hard = min(easy, hard), max(easy, hard)
    more = to_target(curve(*values), hard)
    if isinstance(more, Reached):
        assert reached(to_target(curve(*values), easy)).seconds <= more.seconds + 1e-9
