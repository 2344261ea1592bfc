"""Published speedups, efficiencies and prices follow from their own columns, save for one."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.report.printed import Printed
from paceline.report.published_cnns import cifar_models
from paceline.report.published_sentiment import epochs, machine_prices, rented_runs, shapes
from paceline.report.recomputed import (
    check_cifar,
    check_costs,
    check_shapes,
    inconsistencies,
    machines_that_ran,
    recomputed,
)

TWO_LARGE = "two g3.16xlarge with 2 GPUs each"


def test_one_published_price_counts_one_machine_where_two_ran() -> None:
    (wrong,) = inconsistencies()
    assert (wrong.file, wrong.row) == ("sentiment_cost_2019.csv", TWO_LARGE)
    assert (wrong.column, wrong.printed.text) == ("usd", "20.02")
    assert round(wrong.found, 2) == 40.04 == 2 * 20.02
    assert wrong.sentence == (
        f"sentiment_cost_2019.csv, {TWO_LARGE}: usd is printed as 20.02, but it counts "
        "1 g3.16xlarge where 2 ran; the price of what ran is 40.04."
    )


def test_all_other_figures_follow_to_rounding() -> None:
    figures = recomputed()
    assert len(figures) == 3 + 8 + 2 * 3 + 2 * 11
    assert len({(figure.file, figure.row, figure.column) for figure in figures}) == len(figures)
    for figure in figures:
        if figure.row != TWO_LARGE or figure.column != "usd":
            assert figure.agrees, figure.sentence


def test_printed_cents_are_those_of_the_printed_hours() -> None:
    """To the cent, not only within what rounding could explain."""
    usd = [figure for figure in recomputed() if figure.column == "usd"]
    off = [figure.row for figure in usd if f"{figure.found:.2f}" != figure.printed.text]
    assert off == [TWO_LARGE]
    hours = [figure for figure in recomputed() if figure.column == "hours"]
    assert all(f"{figure.found:.2f}" == figure.printed.text for figure in hours)


def test_speedups_of_shapes_are_those_of_the_mean_epoch() -> None:
    found = {figure.row: figure for figure in recomputed() if figure.column == "speedup"}
    assert [f"{figure.found:.2f}" for figure in found.values()] == ["2.73", "2.27", "2.57"]


# A check that never fails would say the same of all of them.


@given(which=st.integers(0, 10), cents=st.integers(6, 500), up=st.booleans())
def test_a_price_that_is_off_is_found(which: int, cents: int, up: bool) -> None:
    """Up to five cents may come from hours that were rounded, at 9.12 dollars an hour."""
    runs = rented_runs()
    usd = runs[which].usd.value + (cents if up else -cents) / 100
    runs[which] = replace(runs[which], usd=Printed(f"{usd:.2f}"))
    wrong = {figure.row for figure in check_costs(runs, machine_prices()) if not figure.agrees}
    row = runs[which].experiment + (", balanced" if runs[which].balanced else "")
    assert wrong == {TWO_LARGE, row}


def test_a_count_that_is_off_is_found_where_the_price_is_right() -> None:
    runs = [replace(run, counted={"g3.4xlarge": 3}) for run in rented_runs()[:1]]
    hours, usd = check_costs(runs, machine_prices())
    assert hours.agrees
    assert not usd.agrees
    assert "counts 3 g3.4xlarge where 1 ran; the price of what ran is 11.38" in usd.sentence


def test_an_efficiency_or_a_speedup_that_is_off_is_found() -> None:
    (model,) = check_cifar([replace(cifar_models()[0], efficiency_pct=Printed("58.80"))])
    assert not model.agrees
    assert model.sentence.endswith("printed as 58.80, but half the speedup is 58.50.")
    rows = [replace(row, speedup=Printed("2.80")) for row in shapes()]
    found = check_shapes(rows, epochs(), rented_runs())
    assert [figure.agrees for figure in found] == [False, True] * 3


def test_the_name_of_an_experiment_tells_what_ran() -> None:
    assert machines_that_ran("three g3.4xlarge and one p2.xlarge") == {
        "g3.4xlarge": 3,
        "p2.xlarge": 1,
    }
    assert machines_that_ran(TWO_LARGE) == {"g3.16xlarge": 2}


# Rounding.


def test_a_printed_figure_is_all_that_rounds_to_it() -> None:
    assert (Printed("26.4").low, Printed("26.4").high) == pytest.approx((26.35, 26.45))
    assert (Printed("15820").low, Printed("15820").high) == (15819.5, 15820.5)
    assert Printed("2.00").digits == 2


@given(
    value=st.floats(0.1, 1e4),
    divisor=st.floats(0.1, 100),
    few=st.integers(0, 4),
    many=st.integers(0, 4),
)
def test_what_was_computed_and_then_rounded_follows(
    value: float, divisor: float, few: int, many: int
) -> None:
    """Whatever the digits of both, and none that is more than both roundings away does."""
    given_figure = Printed(f"{value:.{few}f}")
    result = Printed(f"{value / divisor:.{many}f}")
    assert result.follows(lambda x: x / divisor, given_figure)
    apart = 0.51 * (10**-few / divisor + 10**-many) + 1e-9 * value / divisor
    away = Printed(f"{value / divisor + 2 * apart:.12f}")
    assert not away.follows(lambda x: x / divisor, given_figure)
