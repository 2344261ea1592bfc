from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from paceline import __version__
from paceline.cli.flags import PANELS
from paceline.spec import RunSpec
from paceline.spec.runspec import flag

VERBS = [
    *("demo", "run", "sweep", "resume", "scale", "runs", "show", "compare", "cost", "reproduce"),
    *("doctor", "launch"),
]


@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_says_what_it_does_and_how(paceline: Callable[..., Any], verb: str) -> None:
    told = paceline(verb, "--help")
    assert told.code == 0
    assert told.err == ""
    first, *_, examples = told.out.split("\n\n")[:3]
    assert first.endswith(".")
    assert examples.count(f"$ paceline {verb}") in (2, 3)
    assert max(map(len, told.out.splitlines())) <= 80


def test_nothing_said_is_answered_with_help(paceline: Callable[..., Any]) -> None:
    told, asked = paceline(), paceline("-h")
    assert told == asked
    assert told.code == 0
    assert all(f"  {verb} " in told.out for verb in VERBS)


def test_version(paceline: Callable[..., Any]) -> None:
    assert paceline("--version").out == f"paceline {__version__}\n"


def test_every_field_of_a_spec_has_a_flag_under_a_subject(paceline: Callable[..., Any]) -> None:
    told = paceline("run", "--help").out
    for name in RunSpec.model_fields:
        assert f" {flag(name)}" in told
    assert {name for names in PANELS.values() for name in names} == set(RunSpec.model_fields)


def test_help_tells_defaults_and_known_names(paceline: Callable[..., Any]) -> None:
    run, demo = " ".join(paceline("run", "-h").out.split()), paceline("demo", "-h").out
    assert "how bytes move (auto, shm, tcp; default: auto)" in run
    assert "passes over the data (default: the task's own)" in run
    assert "passes over the data (default: 50)" in demo
    assert "-n, --workers INT" in run


def test_the_command_line_does_not_import_torch() -> None:
    code = "import sys; from paceline.cli.main import main; main(['run', '-h']); "
    code += "sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL, timeout=30)
