"""Contenders that are processes of their own do their steps."""

from __future__ import annotations

from itertools import permutations

import pytest

from bench.catalog import DDP, LOCKSTEP, MODELS, WORKERS
from bench.contenders import PEERS


@pytest.mark.thorough
@pytest.mark.parallel
@pytest.mark.timeout(120, method="signal")
@pytest.mark.parametrize("name", [LOCKSTEP, DDP])
def test_every_step_of_every_worker_has_an_end(name: str) -> None:
    ends = PEERS[name](MODELS["softmax"], 30)
    assert [len(times) for times in ends] == [30] * WORKERS
    assert all(times == sorted(times) for times in ends)


@pytest.mark.thorough
@pytest.mark.parallel
@pytest.mark.timeout(120, method="signal")
def test_in_step_nobody_begins_a_step_before_all_have_made_the_last() -> None:
    ends = PEERS[LOCKSTEP](MODELS["softmax"], 30)
    for mine, others in permutations(ends, 2):
        # A step ends after the wait; whoever ends step n + 1 first has waited for all of step n.
        assert all(after > before for after, before in zip(mine[2:], others, strict=False))
