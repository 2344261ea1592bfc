"""Money, and devices that should be equal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.diagnose.alike import slower
from paceline.diagnose.cost import Rented, price, rent
from paceline.errors import UnknownName

PRICES = {"small": 0.9, "large": 4.5}


def test_price_is_count_times_price_an_hour_times_hours() -> None:
    both = rent({"small": 2, "large": 1}, PRICES, 10)
    assert price(both) == pytest.approx(2 * 9 + 45)
    late = Rented(machine="small", count=1, price_an_hour=0.9, hours=2)
    assert price([*both, late]) == pytest.approx(2 * 9 + 45 + 1.8)
    assert price([]) == 0


@given(count=st.integers(0, 100), hours=st.floats(0, 1e4), times=st.integers(1, 10))
def test_more_machines_or_more_hours_cost_in_proportion(
    count: int, hours: float, times: int
) -> None:
    once = price(rent({"large": count}, PRICES, hours))
    assert price(rent({"large": times * count}, PRICES, hours)) == pytest.approx(times * once)
    assert price(rent({"large": count}, PRICES, times * hours)) == pytest.approx(times * once)


def test_a_machine_without_a_price_is_named_with_those_that_have_one() -> None:
    with pytest.raises(UnknownName, match="unknown machine 'lagre': did you mean 'large'"):
        rent({"lagre": 1}, PRICES, 1)


def test_devices_more_than_five_percent_apart_are_not_equal() -> None:
    assert slower({"a": 100.0, "b": 96.0, "c": 95.1}) == {}
    assert slower({"a": 100.0, "b": 94.0, "c": 85.0}) == pytest.approx({"b": 0.06, "c": 0.15})
    assert slower({"a": 100.0, "b": 94.0}, apart=0.1) == {}
    assert slower({}) == {}
    assert slower({"a": 0.0, "b": 0.0}) == {}
