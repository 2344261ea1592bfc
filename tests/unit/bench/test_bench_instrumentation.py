"""The bench of instrumentation takes away what it says, gives it back, and reckons as it says."""

from __future__ import annotations

import numpy as np
import pytest

from bench.instrumentation import WARM, hush, middle, ratios
from paceline.transport.slate import COMPUTE, Slate
from paceline.worker import loop
from paceline.worker.reporter import Reporter


def test_what_is_taken_away_comes_back() -> None:
    slate, before = Slate(), (Reporter.step, Slate.at, loop.time)
    loud = hush()
    slate.begin(7)
    assert slate.read()[1] == 0
    assert loop.time.monotonic() == 0.0
    loud()
    assert (Reporter.step, Slate.at, loop.time) == before
    slate.begin(7)
    assert slate.read()[:2] == (COMPUTE, 7)


def test_a_quiet_block_is_compared_with_a_neighbour() -> None:
    seconds = [9.0] * WARM + [1.0, 0.9, 1.1, 1.2, 1.0]  # loud, quiet, quiet, loud; a last one
    assert ratios([0.0, *np.cumsum(seconds)]) == pytest.approx([0.9 / 1.0, 1.1 / 1.2])


def test_blocks_that_are_slow_by_chance_do_not_make_a_difference() -> None:
    chance = np.random.default_rng(3)
    slowed = np.where(chance.random(8000) < 0.3, 1.5, 1.0) * chance.normal(1, 0.02, 8000)
    found = middle(ratios([0.0, *np.cumsum(slowed)]))
    assert found.value == pytest.approx(1.0, abs=0.005)
    assert found.low < 1.0 < found.high
