"""The short version of `python -m bench.goodput`."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from bench.goodput import CREWS, beside

pytestmark = [pytest.mark.parallel, pytest.mark.timeout(60, method="signal")]


@pytest.mark.parametrize("crew", CREWS)
def test_a_run_that_loses_roles_again_and_again_gets_as_good(crew: str, runs: Path) -> None:
    pair = beside(runs, CREWS[crew], 150, 0.4, Random(crew))
    assert pair.calm.deaths == 0
    assert pair.harmed.deaths >= 2
    assert pair.harmed.accuracy > 0.9
    assert 0 < pair.goodput < 1.5
