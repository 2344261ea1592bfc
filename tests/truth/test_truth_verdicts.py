"""The truth table: runs that are slow for a known reason, and what a verdict must say of each."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

import paceline
from paceline.store.folder import RunFolder
from tools.situations import Situation, situations

# Alone: with other work beside it, what limits a run is that there are too few cores, and a
# verdict that says so is right.
pytestmark = [
    *(pytest.mark.parallel, pytest.mark.alone),
    pytest.mark.timeout(60, method="signal"),
]

TABLE = {s.name: s for s in situations(len(os.sched_getaffinity(0)))}


@pytest.mark.parametrize("situation", TABLE.values(), ids=lambda s: s.name.replace(" ", "-"))
def test_the_verdict_names_the_cause_and_the_role(situation: Situation, runs: Path) -> None:
    found = paceline.fit(out=runs, **situation.spec).verdict
    told = json.dumps({key: found[key] for key in ("sentence", "why", "conflicts", "evidence")})
    assert found["bottleneck"] == situation.cause, told
    assert tuple(found["roles"]) == situation.roles, told
    if situation.second:
        others = [each["cause"] for each in found["findings"][1:] if each["cause"] != "compute"]
        assert others[0] == situation.second, told
    assert found["findings"][0]["evidence"]
    assert 1 <= len(found["advice"]) <= 3


def test_the_first_advice_brings_what_was_predicted(cli: Any) -> None:
    """On the command line, of a run that is only read from its folder."""
    situation = TABLE["evaluation every step"]
    run = paceline.fit(out=cli.cwd / "runs", **situation.spec)
    command = cli.run(*["diagnose", "--try", "--turns", "2", "--seconds", "1", "--json"])
    assert command.process.returncode == 0, command.stderr
    told = json.loads(command.stdout)
    assert told["run"] == run.folder.name
    assert told["tried"]["changes"] == {"evaluate": "end", "target_accuracy": None}
    assert told["tried"]["actual"]["value"] > 1.5
    assert len(list((cli.cwd / "runs").iterdir())) == 1  # nothing of the trial is kept
    assert RunFolder.find(cli.cwd / "runs", "last").name == run.folder.name
