"""What bench.goodput does to runs and reads from them."""

from __future__ import annotations

from random import Random

import pytest

from bench.goodput import STRATEGIES, TCP, Ended, Pair, accuracies, goodputs, kills
from paceline.spec import RunSpec


def test_a_kill_in_every_period() -> None:
    faults = kills(TCP, 30.0, 90.0, Random(0))
    assert [fault.partition("@")[2] for fault in faults] == ["15.000s", "45.000s", "75.000s"]


@pytest.mark.parametrize("name", STRATEGIES)
def test_only_roles_that_the_run_has_are_killed(name: str) -> None:
    how = STRATEGIES[name]
    faults = kills(how, 1.0, 100.0, Random(0))
    RunSpec(task="lenet", workers=2, inject=faults, **how)
    assert any(fault.startswith("kill:server") for fault in faults) == (name == "ps-async tcp")


def test_what_kills_cost_and_what_they_leave() -> None:
    pairs = [
        Pair(Ended(0.990, 1000.0, 0), Ended(accuracy, rate, 3))
        for accuracy, rate in ((0.989, 950.0), (0.980, 880.0), (0.991, 990.0))
    ]
    assert "+0.10 (-0.10 – +1.00) points less, wanted at most 0.3: met" in accuracies("a", pairs)
    assert "0.950 (0.880 – 0.990) of it, wanted 0.9: met" in goodputs("a", pairs)
    worse = [Pair(pair.calm, pairs[1].harmed) for pair in pairs]
    assert "wanted at most 0.3: not met" in accuracies("a", worse)
    assert "wanted 0.9: not met" in goodputs("a", worse)
