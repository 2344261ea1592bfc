"""The short version of `python -m bench.goodput`."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from bench.goodput import CREWS, beside

pytestmark = [pytest.mark.parallel, pytest.mark.timeout(60, method="signal")]


@pytest.mark.thorough
def test_a_run_that_loses_roles_again_and_again_gets_as_good(runs: Path) -> None:
    pair = beside(runs, CREWS["with standbys"], 120, 0.4, Random(0))
    assert pair.calm.deaths == 0
    assert pair.harmed.deaths >= 2
    assert pair.harmed.accuracy > 0.9
    assert pair.goodput > 0  # how much: beside other tests no two runs are equally fast
