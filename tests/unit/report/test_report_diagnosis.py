from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_samples import a_role, a_summary

from paceline.report.diagnosis import BAR, SPANS, bar, diagnosis
from paceline.report.layout import render
from paceline.types import FINE, PAUSES, SERVING

VERDICT: dict[str, Any] = {
    "bottleneck": "input",
    "sentence": "input: workers wait 70 % of their time for samples.",
    "evidence": {},
    "advice": [],
    "roles": ["worker-0"],
    "confidence": "medium",
    "why": "12 steps of each worker in 0.8 s, which is short",
    "conflicts": ["input and disk cost about as much."],
    "findings": [
        {
            "cause": "input",
            "share": 0.7,
            "roles": ["worker-0"],
            "confidence": "medium",
            "evidence": [
                {"what": "time spent waiting", "value": 70.0, "unit": "%", "source": "steps: data"},
                {"what": "cores", "value": 1.234, "unit": "cores", "source": "CPU"},
            ],
            "advice": [
                {"text": "make batches cheaper", "changes": {}, "gain": {"low": 1, "high": 3.3}},
                {
                    "text": "--workers 2",
                    "changes": {"workers": 2},
                    "gain": {"low": 1.2, "high": 2.0},
                },
            ],
        },
        {
            "cause": "compute",
            "share": 0.2,
            "roles": [f"worker-{n}" for n in range(5)],
            "confidence": "high",
            "evidence": [],
            "advice": [],
        },
    ],
}


def test_it_tells_all_that_a_verdict_has_to_say() -> None:
    role = a_role("worker-0", spans={"data": 7.0, "forward": 1.0, "backward": 2.0, "push": None})
    told = render(diagnosis(a_summary(verdict=VERDICT, roles=[role])), width=100)
    for each in (
        "input: workers wait 70 %",
        "confidence medium: 12 steps",
        "but input and disk cost about as much.",
        "d" * 28 + "F" * 4 + "B" * 8,
        "70 %  steps: data",
        "1.23 cores",
        "worker-0, worker-1, worker-2 and 2 more",
        "1. make batches cheaper  up to 3.30x, by hand",
        "2. --workers 2  1.20x to 2.00x",
    ):
        assert each in told, told


def test_a_run_without_steps_has_a_verdict_and_no_bars() -> None:
    nothing = VERDICT | {"bottleneck": "unknown", "sentence": "unknown: nothing.", "findings": []}
    told = render(diagnosis(a_summary(verdict=nothing, roles=[])), width=80)
    assert "unknown: nothing." in told
    assert "evidence" not in told


def test_every_span_has_a_letter() -> None:
    assert {*FINE, *PAUSES, *SERVING} <= SPANS.keys()


@given(st.dictionaries(st.sampled_from(sorted(SPANS)), st.floats(0.001, 1), min_size=1))
def test_a_bar_is_as_long_as_the_time(drawn: dict[str, float]) -> None:
    whole = sum(drawn.values())
    text = bar({name: value / whole for name, value in drawn.items()})
    assert len(text) == BAR + 2


@pytest.mark.parametrize("width", [40, 80, 160])
def test_it_fits(width: int) -> None:
    told = render(diagnosis(a_summary(verdict=VERDICT)), width=width)
    assert max(len(line) for line in told.splitlines()) <= width
