"""The bench of instrumentation takes away what it says, gives it back, and reckons as it says."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from bench import instrumentation
from bench.instrumentation import BLOCK, WARM, hush, middle, ratios
from paceline.store.steps import StepWriter
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


def began(blocks: list[float]) -> npt.NDArray[np.float64]:
    """When steps began of which those of each block take so long."""
    return np.concatenate([[0.0], np.cumsum(np.repeat(blocks, BLOCK))])[:-1]


def test_a_measured_block_is_compared_with_a_neighbour() -> None:
    blocks = [9.0] * WARM + [1.0, 0.9, 1.1, 1.2, 1.0]  # loud, quiet, quiet, loud; a last one
    assert ratios(began(blocks)) == pytest.approx([1.0 / 0.9, 1.2 / 1.1])


def test_steps_that_are_slow_by_chance_do_not_make_a_difference() -> None:
    chance = np.random.default_rng(3)
    slowed = np.where(chance.random(200 * BLOCK) < 0.1, 1.5, 1.0) * chance.normal(1, 0.02, 12000)
    found = middle(ratios(np.cumsum(slowed)))
    assert found.value == pytest.approx(1.0, abs=0.005)
    assert found.low < 1.0 < found.high


def test_rows_that_are_made_to_tell_are_timed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]

    def settle(self: object) -> None:
        now[0] += 1.0

    def tell(self: object) -> None:
        now[0] += 1.0
        StepWriter.settle(self)  # type: ignore[arg-type]

    monkeypatch.setattr(instrumentation, "_used", lambda: now[0])
    monkeypatch.setattr(StepWriter, "settle", settle)
    monkeypatch.setattr(Reporter, "tell", tell)
    telling = instrumentation.Telling()
    Reporter.tell(None)  # type: ignore[arg-type]
    StepWriter.settle(None)  # type: ignore[arg-type]
    assert (telling.seconds, telling.rows) == (1.0, 2.0)
