"""Advice that is tried: which one, in what runs, and what is said of it."""

from __future__ import annotations

from typing import Any

import pytest
from evidence_samples import SYNC

from paceline.diagnose.finding import Gain
from paceline.diagnose.trial import (
    FEWEST,
    Asked,
    Tried,
    as_object,
    choose,
    sentence,
    short_specs,
    spec_of,
)
from paceline.errors import RequestError

BY_HAND = {"text": "a faster link", "changes": {}, "gain": {"low": 1.0, "high": 2.0}}
LARGER = {"text": "--batch 128", "changes": {"batch": 128}, "gain": {"low": 1.5, "high": 2.0}}


def asked(**changes: Any) -> Asked:
    gain = Gain(1.0, 4.0)
    return Asked(cause="small-batch", number=1, text="", changes=changes, predicted=gain)


def verdict(*advice: dict[str, Any]) -> dict[str, Any]:
    finding = {"cause": "small-batch", "advice": list(advice)}
    return {"bottleneck": "small-batch", "findings": [finding] if advice else []}


def test_the_first_that_a_program_can_follow() -> None:
    chosen = choose(verdict(BY_HAND, LARGER))
    assert (chosen.number, chosen.changes) == (2, {"batch": 128})
    assert choose(verdict(LARGER, BY_HAND, LARGER), 3).number == 3


@pytest.mark.parametrize(
    ("advice", "number", "told"),
    [
        ((BY_HAND,), None, "do it by hand: a faster link."),
        ((), None, "there is no advice."),
        ((BY_HAND, LARGER), 1, "a program can follow these: 2."),
        ((BY_HAND, LARGER), 7, "a program can follow these: 2."),
        ((BY_HAND,), 1, "no program can follow it."),
    ],
)
def test_what_cannot_be_tried_is_said(advice: Any, number: int | None, told: str) -> None:
    with pytest.raises(RequestError, match=told):
        choose(verdict(*advice), number)


def test_two_short_runs_that_take_about_as_long() -> None:
    spec = SYNC.with_(
        **{"epochs": 50, "batch": None, "target_accuracy": 0.9},
        inject=["slow:worker-1x2", "kill:worker-0@3s", "limit:server-0=1mbit"],
    )
    before, after = short_specs(spec, 64, asked(batch=256), steps_a_second=100.0, seconds=3.0)
    assert (before.batch, before.steps, before.epochs) == (64, 300, None)
    assert before.inject == ("slow:worker-1x2", "limit:server-0=1mbit")
    assert before.target_accuracy is None
    # Twice the samples a second, in batches four times as large.
    assert (after.batch, after.steps) == (256, 150)
    few, _ = short_specs(spec, 64, asked(batch=256), steps_a_second=0.1, seconds=3.0)
    assert few.steps == FEWEST


@pytest.mark.parametrize(
    ("after", "judged", "inside"),
    [
        ((180.0, 220.0, 200.0), "2.00x (1.80 to 2.20), as predicted: 1.00x to 4.00x.", True),
        ((500.0, 500.0, 500.0), "5.00x (5.00 to 5.00), more than predicted", False),
        ((50.0, 50.0, 50.0), "0.50x (0.50 to 0.50), less than predicted", False),
    ],
)
def test_what_came_of_it(after: tuple[float, ...], judged: str, inside: bool) -> None:
    tried = Tried(asked=asked(batch=256), before=(100.0, 100.0, 100.0), after=after)
    assert sentence(tried).startswith(judged)
    assert as_object(tried)["inside"] is inside


def test_a_script_cannot_be_run_again_from_its_folder() -> None:
    with pytest.raises(RequestError, match="a script"):
        spec_of({"given": "script", "spec": {}})
    assert spec_of({"given": "spec", "spec": SYNC.model_dump()}) == SYNC
