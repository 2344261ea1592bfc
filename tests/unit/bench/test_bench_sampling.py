"""The bench of sampling runs, and tells what everything costs."""

from __future__ import annotations

import pytest

from bench import sampling


def test_it_tells_the_cost_of_every_part(capsys: pytest.CaptureFixture[str]) -> None:
    sampling.main(["--roles", "2", "--threads", "2", "--repeats", "3"])
    told = capsys.readouterr().out
    assert "2 roles of 2 threads" in told
    assert told.count("% of a core") == 4
