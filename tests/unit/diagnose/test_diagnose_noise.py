"""The gradient-noise scale: unbiased, with an interval that covers, and silent where it must be."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.diagnose.noise import needed, noise_scale

Array = npt.NDArray[np.float64]


@given(
    signal=st.floats(1e-3, 1e3),
    noise=st.floats(1e-3, 1e3),
    small=st.integers(1, 1000),
    times=st.integers(2, 100),
)
def test_expected_norms_give_both_parts_back(
    signal: float, noise: float, small: int, times: int
) -> None:
    large = small * times
    found = noise_scale(
        [signal + noise / small], [signal + noise / large], small=small, large=large
    )
    assert found.signal == pytest.approx(signal, rel=1e-6)
    assert found.noise == pytest.approx(noise, rel=1e-3, abs=1e-9 * small * signal)
    assert (found.low, found.high) == (0, math.inf)  # of one step nobody knows the spread


def squares(
    rng: np.random.Generator, *, steps: int, small: int, workers: int, spread: float
) -> tuple[Array, Array]:
    """Squared norms of one worker's and of all workers' mean gradient, of 50 numbers."""
    true = np.full(50, 0.2)
    each = true + rng.normal(0, spread / math.sqrt(small), (steps, workers, 50))
    return (each[:, 0] ** 2).sum(1), (each.mean(1) ** 2).sum(1)


def test_the_interval_covers_the_truth() -> None:
    """|G|² is 50 · 0.2² = 2, tr Σ is 50 · 4² = 800: a scale of 400 samples."""
    rng = np.random.default_rng(7)
    covered, means, tries = 0, [], 300
    for _ in range(tries):
        few, many = squares(rng, steps=60, small=32, workers=4, spread=4.0)
        found = noise_scale(few.tolist(), many.tolist(), small=32, large=128)
        covered += found.low <= 400 <= found.high
        means.append((found.signal, found.noise))
    assert 0.90 <= covered / tries <= 0.99
    signal, noise = np.mean(means, axis=0)
    assert signal == pytest.approx(2, rel=0.03)
    assert noise == pytest.approx(800, rel=0.03)


def test_a_gradient_below_its_noise_has_no_upper_end() -> None:
    rng = np.random.default_rng(3)
    few, many = squares(rng, steps=6, small=1, workers=2, spread=50.0)
    found = noise_scale(few.tolist(), many.tolist(), small=1, large=2)
    assert found.high == math.inf
    assert found.low < 50 * 50**2 / 2  # the truth


def test_more_noise_than_the_large_batch_can_hold_is_not_known() -> None:
    found = noise_scale([4.0, 4.2, 4.1], [1.0, 1.1, 1.0], small=1, large=2)
    assert found.signal < 0
    assert math.isnan(found.samples)
    assert found.sentence.startswith("the noise scale cannot be told from 3 steps")


def test_no_noise_makes_any_larger_batch_waste() -> None:
    found = noise_scale([2.0, 2.0], [2.0, 2.0], small=8, large=16)
    assert (found.samples, found.low, found.high) == (0, 0, 0)
    assert needed(64, found.samples).samples == math.inf


def test_the_sentence_tells_the_batch_and_its_bounds() -> None:
    rng = np.random.default_rng(11)
    few, many = squares(rng, steps=400, small=32, workers=4, spread=4.0)
    found = noise_scale(few.tolist(), many.tolist(), small=32, large=128)
    bounds = f"{found.low:,.0f} to {found.high:,.0f}"
    assert found.sentence == (
        f"a batch of more than {found.samples:,.0f} samples ({bounds}), over all workers together, "
        "is mostly waste: it costs more samples than it saves steps"
    )
    assert 300 < found.low < found.samples < found.high < 550


@given(scale=st.floats(1, 1e6), batch=st.floats(1, 1e6))
def test_at_the_scale_steps_and_samples_are_both_twice_the_least(
    scale: float, batch: float
) -> None:
    at = needed(scale, scale)
    assert (at.steps, at.samples) == (2, 2)
    # What a larger batch saves in steps it costs in samples: (steps − 1)·(samples − 1) = 1.
    found = needed(batch, scale)
    assert (found.steps - 1) * (found.samples - 1) == pytest.approx(1, rel=1e-6)


@pytest.mark.parametrize(
    ("few", "many", "small", "large", "says"),
    [
        ([1.0], [1.0], 8, 8, "a batch of 8 is not larger than one of 8"),
        ([1.0], [1.0], 0, 8, "a batch of 8 is not larger than one of 0"),
        ([1.0, 2.0], [1.0], 1, 8, "both gradients"),
        ([], [], 1, 8, "both gradients"),
    ],
)
def test_what_cannot_be_estimated_is_refused(
    few: list[float], many: list[float], small: int, large: int, says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        noise_scale(few, many, small=small, large=large)
