"""Scaling laws: each is found again from its own points, with noise and with an odd point too."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.diagnose.amdahl import amdahl, fit_amdahl, karp_flatt
from paceline.diagnose.usl import fit_usl, peak, usl

COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
counts = st.lists(st.integers(1, 256), min_size=4, max_size=10, unique=True)
fractions = st.floats(0, 1)
few_fractions = st.just(0.0) | st.floats(0.001, 0.5)
pair_costs = st.just(0.0) | st.floats(1e-5, 0.1)
ones = st.floats(1e-3, 1e9)


# Amdahl and Karp-Flatt.


@given(serial=fractions, workers=st.integers(2, 10_000))
def test_karp_flatt_of_an_amdahl_curve_is_its_serial_fraction(serial: float, workers: int) -> None:
    assert karp_flatt(amdahl(workers, serial), workers) == pytest.approx(serial, abs=1e-9)


def test_karp_flatt_tells_what_is_beyond_both_ends() -> None:
    assert karp_flatt(1.0, 4) == pytest.approx(1)
    assert karp_flatt(0.8, 2) > 1
    assert karp_flatt(2.07, 2) < 0
    with pytest.raises(ValueError, match="takes two"):
        karp_flatt(1.0, 1)


@given(serial=fractions, one=ones, workers=counts)
def test_an_amdahl_curve_is_found_from_its_points(
    serial: float, one: float, workers: list[int]
) -> None:
    found = fit_amdahl(workers, [one * amdahl(n, serial) for n in workers])
    assert found is not None
    assert found.serial == pytest.approx(serial, abs=1e-6)
    assert found.rate(1) == pytest.approx(one, rel=1e-6)
    assert max(map(abs, found.off)) < 1e-6


def test_amdahl_has_a_limit_unless_nothing_is_serial() -> None:
    found = fit_amdahl(COUNTS, [amdahl(n, 0.05) for n in COUNTS])
    assert found is not None
    assert found.limit == pytest.approx(20)
    perfect = fit_amdahl(COUNTS, COUNTS)
    assert perfect is not None
    assert perfect.limit == math.inf


def test_one_worker_count_is_no_curve() -> None:
    assert fit_amdahl([4, 4], [3.0, 3.1]) is None
    assert fit_usl([1, 2, 2], [1.0, 1.9, 1.8]) is None


# The Universal Scalability Law.


@given(sigma=few_fractions, kappa=pair_costs, one=ones, workers=counts)
def test_a_usl_curve_is_found_from_its_points(
    sigma: float, kappa: float, one: float, workers: list[int]
) -> None:
    found = fit_usl(workers, [one * usl(n, sigma, kappa) for n in workers])
    assert found is not None
    for n in workers:
        assert found.rate(n) == pytest.approx(one * usl(n, sigma, kappa), rel=1e-6)
    if max(workers) <= 40 and min(workers) == 1:  # else the numbers hang on the last digits
        assert found.sigma == pytest.approx(sigma, abs=1e-5)
        assert found.kappa == pytest.approx(kappa, abs=1e-6)


@given(
    sigma=st.floats(0, 0.3),
    kappa=st.floats(0.002, 0.02),
    seed=st.integers(0, 2**32 - 1),
)
def test_noise_of_two_percent_moves_the_law_a_little(sigma: float, kappa: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    noise = np.exp(0.02 * rng.uniform(-1.7, 1.7, len(COUNTS)))
    rates = [100 * usl(n, sigma, kappa) * wrong for n, wrong in zip(COUNTS, noise, strict=True)]
    found = fit_usl(COUNTS, rates)
    assert found is not None
    assert found.sigma == pytest.approx(sigma, abs=0.08)
    assert found.kappa == pytest.approx(kappa, abs=0.003)
    for n in COUNTS:
        assert found.rate(n) == pytest.approx(100 * usl(n, sigma, kappa), rel=0.08)
    # Near a flat top the count may be off, but whoever rents that many loses nothing.
    top = usl(peak(sigma, kappa), sigma, kappa)
    assert usl(found.peak, sigma, kappa) > 0.98 * top


@pytest.mark.parametrize("odd", range(len(COUNTS)))
def test_one_odd_point_is_told_and_does_not_bend_the_curve(odd: int) -> None:
    rates = [100 * usl(n, 0.05, 0.002) for n in COUNTS]
    rates[odd] /= 2
    found = fit_usl(COUNTS, rates)
    assert found is not None
    assert found.sigma == pytest.approx(0.05, rel=0.01)
    assert found.peak == pytest.approx(peak(0.05, 0.002), rel=0.01)
    assert found.off[odd] == pytest.approx(-0.5, abs=0.01)
    who = "1 worker" if odd == 0 else f"{COUNTS[odd]} workers"
    assert any(told.startswith(f"the rate of {who} lies 50 % below") for told in found.caveats)


@given(sigma=st.floats(0, 0.9), kappa=st.floats(1e-4, 0.5))
def test_beyond_the_peak_it_is_slower(sigma: float, kappa: float) -> None:
    most = peak(sigma, kappa)
    top = usl(most, sigma, kappa)
    assert usl(most * 1.1, sigma, kappa) < top
    assert most == 1 or usl(most / 1.1, sigma, kappa) < top


def test_the_ends_of_the_peak() -> None:
    assert peak(0.1, 0) == math.inf
    assert peak(1.2, 0) == 1
    assert peak(0.5, 10) == 1


def test_the_best_count_is_whole() -> None:
    rates = [usl(n, 0.1, 0.05) for n in COUNTS]
    found = fit_usl(COUNTS, rates)
    assert found is not None
    assert found.best == max(range(1, 33), key=lambda n: usl(n, 0.1, 0.05))
    endless = fit_usl(COUNTS, [amdahl(n, 0.1) for n in COUNTS])
    assert endless is not None
    assert endless.best is None


def test_three_counts_claim_no_interval() -> None:
    found = fit_usl([1, 2, 4], [1.0, 1.8, 2.9])
    assert found is not None
    assert (found.low, found.high) == (1, math.inf)
    assert "measure a fourth" in found.caveats[0]


def test_a_peak_nobody_measured_is_called_one() -> None:
    found = fit_usl([1, 2, 3, 4], [usl(n, 0.02, 0.001) for n in (1, 2, 3, 4)])
    assert found is not None
    assert found.peak == pytest.approx(31.3, abs=0.1)
    assert "the most lies beyond the 4 workers that were measured" in found.caveats


def test_a_clean_curve_has_no_caveats() -> None:
    found = fit_usl(COUNTS, [usl(n, 0.05, 0.005) for n in COUNTS])
    assert found is not None
    assert found.caveats == ()
    assert found.low == pytest.approx(found.high)


def test_faster_than_linear_is_not_called_a_law() -> None:
    found = fit_usl([1, 2, 3, 4], [1.0, 2.4, 4.0, 6.0])
    assert found is not None
    assert (found.sigma, found.kappa) == (0, 0)
    assert "from 1 to 2 workers it gained more than was added" in " ".join(found.caveats)


@pytest.mark.parametrize(
    ("workers", "rates", "says"),
    [
        ([1, 2, 3], [1.0, 2.0], "each number of workers needs one rate"),
        ([1, 2, 0], [1.0, 2.0, 3.0], "begin at 1"),
        ([1, 2, 3], [1.0, 2.0, 0.0], "above 0"),
        ([1, 2, 3], [1.0, 2.0, math.nan], "finite"),
    ],
)
def test_what_is_no_curve_is_refused(workers: list[int], rates: list[float], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        fit_usl(workers, rates)
    with pytest.raises(ValueError, match=says):
        fit_amdahl(workers, rates)
