"""A stopwatch leaves no time out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.measure import stopwatch
from paceline.measure.stopwatch import GRAIN, Stopwatch

NAMES = ("receive", "apply", "idle")
turns = st.lists(st.tuples(st.sampled_from(NAMES), st.floats(0, 0.05)), min_size=1)


@given(turns=turns)
def test_rows_follow_each_other_and_sum_to_the_time(turns: list[tuple[str, float]]) -> None:
    now, rows = 5.0, []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stopwatch.time, "monotonic", lambda: now)
        watch = Stopwatch(NAMES, lambda began, seconds: rows.append((began, seconds)))
        for name, seconds in turns:
            watch.at(name)
            watch.row()
            now += seconds
        watch.at("idle")
        spent = dict(watch.seconds)
        watch.reset()
    assert sum(spent.values()) == pytest.approx(now - 5.0)
    for name in NAMES:
        assert spent[name] == pytest.approx(sum(s for each, s in turns if each == name))
    told = [sum(seconds) for _, seconds in rows]
    assert all(length >= GRAIN - 1e-9 for length in told[:-1])
    begin = 5.0
    for (began, _), length in zip(rows, told, strict=True):
        assert began == pytest.approx(begin)
        begin += length
    assert begin == pytest.approx(now)
    assert not any(watch.seconds.values())
