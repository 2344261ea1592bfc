"""The bench of recording still measures what the loop is."""

from __future__ import annotations

import os
import re

import pytest

from bench import recording


def test_it_tells_a_ratio(capsys: pytest.CaptureFixture[str]) -> None:
    cores = os.sched_getaffinity(0)
    try:
        recording.main(["--repeats", "4"])
    finally:
        os.sched_setaffinity(0, cores)
    assert re.search(r"without: \d\.\d{4}", capsys.readouterr().out)
