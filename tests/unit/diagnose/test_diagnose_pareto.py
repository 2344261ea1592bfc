"""Time against money: who is beaten, and by whom."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from paceline.diagnose.pareto import Choice, beaten, beats

figures = st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), min_size=1, max_size=12)


def once(name: str, seconds: float, price: float) -> Choice:
    return Choice(name=name, seconds={"": seconds}, price_a_second=price)


@given(figures)
def test_the_front_is_never_empty_and_each_that_is_beaten_is_by_one_of_it(
    told: list[tuple[int, int]],
) -> None:
    choices = [once(str(i), float(s), float(p)) for i, (s, p) in enumerate(told)]
    lost = beaten(choices)
    front = {choice.name for choice in choices} - set(lost)
    assert front
    assert set(lost.values()) <= front
    assert not any(beats(one, one) for one in choices)


def test_less_of_one_and_no_more_of_the_other_is_enough() -> None:
    slow, fast, dear = once("slow", 4.0, 1.0), once("fast", 2.0, 2.0), once("dear", 2.0, 3.0)
    assert beaten([slow, fast, dear]) == {"slow": "fast", "dear": "fast"}


def test_what_the_noise_explains_beats_nobody() -> None:
    def cell(name: str, *seconds: float) -> Choice:
        return Choice(name=name, seconds=dict(enumerate(seconds)), price_a_second=1.0)

    steady, close, slow = cell("a", 1, 1.1, 0.9), cell("b", 1.1, 1.0, 1.0), cell("c", 2, 2.2, 1.8)
    assert beaten([steady, close, slow]) == {"c": "a"}
