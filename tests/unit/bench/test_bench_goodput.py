"""What bench.goodput does to runs and reads from them."""

from __future__ import annotations

from random import Random

import pytest

from bench.findings import Findings
from bench.goodput import STRATEGIES, TCP, Ended, Pair, kills, left, lost
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
    worse = [Pair(pair.calm, pairs[1].harmed) for pair in pairs]
    found = Findings()
    for some in (pairs, worse):
        lost(found, "a", some)
        left(found, "a", some)
    assert found.wanted[:2] == [
        ("a: at most 0.3 points less", "+0.10 (-0.10 – +1.00)", True),
        ("a: 0.9 of the speed", "0.950 (0.880 – 0.990)", True),
    ]
    assert [met for _, _, met in found.wanted[2:]] == [False, False]
