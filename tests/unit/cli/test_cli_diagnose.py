from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paceline.diagnose.finding import Gain
from paceline.diagnose.trial import Asked, Tried
from paceline.errors import Interrupted
from paceline.spec import RunSpec
from paceline.store.folder import RunFolder
from paceline.store.steps import StepWriter
from paceline.types import FINE

ASKED = Asked(cause="update", number=1, text="", changes={"batch": 512}, predicted=Gain(1.5, 3.0))
TRIED = Tried(asked=ASKED, before=(100.0, 110.0), after=(200.0, 230.0))


@pytest.fixture
def recorded(tmp_path: Path) -> RunFolder:
    """A run whose optimizer takes most of the time, broken off or still going."""
    folder = RunFolder.create(tmp_path / "runs", RunSpec(batch=64, steps=200))
    folder.write_live("running", os.getpid(), [{"role": "worker-0"}])
    writer = StepWriter(folder.steps_path("worker-0"))
    for step in range(1, 101):
        spent = {"forward": 0.01, "backward": 0.01, "update": 0.08}
        phases = [spent.get(name, 0.0) for name in FINE]
        writer.append(0.1 * step, step, 0, 64, 1.0, *phases, 0.1 * step - 0.08, step, 0)
    writer.close()
    return folder


def test_it_tells_of_the_last_run_while_it_goes_on(
    paceline: Callable[..., Any], recorded: RunFolder
) -> None:
    told = paceline("diagnose")
    assert (told.code, told.err) == (0, "")
    assert "update: applying updates takes 80 % of the time" in told.out
    assert "1. --batch" in told.out
    found = json.loads(paceline("diagnose", recorded.name, "--json").out)
    assert (found["run"], found["verdict"]["bottleneck"]) == (recorded.name, "update")
    assert found["tried"] is None


def test_a_run_without_steps_has_nothing_to_tell(
    paceline: Callable[..., Any], tmp_path: Path
) -> None:
    RunFolder.create(tmp_path / "runs", RunSpec())
    told = paceline("diagnose")
    assert told.code == 0
    assert "unknown: no worker recorded enough steps" in told.out
    refused = paceline("diagnose", "--try")
    assert refused.code == 2
    assert "there is no advice" in refused.err


def test_trying_tells_predicted_and_actual(
    paceline: Callable[..., Any], recorded: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {}

    def try_advice(run: str, **how: Any) -> Tried:
        asked.update(how, run=run)
        how["told"]("turn 1 of 2")
        return TRIED

    monkeypatch.setattr("paceline.api.try_advice", try_advice)
    told = paceline("diagnose", "--try", "--turns", "2", "--seconds", "1.5")
    assert told.code == 0
    assert "2.05x (2.00 to 2.09), as predicted: 1.50x to 3.00x." in told.out
    assert "trying: --batch" in told.err
    assert "turn 1 of 2" in told.err
    assert (asked["turns"], asked["seconds"], Path(asked["run"])) == (2, 1.5, recorded.path)
    found = json.loads(paceline("diagnose", "--try", "--json").out)["tried"]
    assert found["actual"]["value"] == pytest.approx(np.median([2.0, 230 / 110]))


def test_nothing_is_tried_beside_a_run_that_goes_on(
    paceline: Callable[..., Any], recorded: RunFolder
) -> None:
    told = paceline("diagnose", "--try")
    assert told.code == 2
    assert "still trains" in told.err


def test_an_interrupt_is_no_failure(
    paceline: Callable[..., Any], recorded: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any, **__: Any) -> Tried:
        raise Interrupted("stopped; the advice was not tried to the end.")

    monkeypatch.setattr("paceline.api.try_advice", interrupted)
    told = paceline("diagnose", "--try")
    assert told.code == 130
    assert "not tried to the end" in told.err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("nowhere", "there is no run in"),
        ("--turns 0", "--turns must be at least 1"),
        ("--seconds 0", "--seconds between 0.2 and 600"),
        ("--advice 2", "say --try, too"),
        ("--try --advice 9", "--advice 9: a program can follow these"),
        ("--turns two", "--turns"),
    ],
)
def test_a_wrong_request_is_a_sentence(
    paceline: Callable[..., Any], recorded: RunFolder, arguments: str, sentence: str
) -> None:
    told = paceline("diagnose", *arguments.split())
    assert told.code == 2
    assert sentence.replace("there is no run in", "there is no run") in told.err
