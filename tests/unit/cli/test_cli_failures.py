from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from paceline.errors import DataError, RoleDied, RunFailed


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            "rnu",
            "unknown verb 'rnu': did you mean 'run'? Known: convert, demo, diagnose, doctor, ",
        ),
        ("run --wrokers 2", "unknown flag '--wrokers': did you mean '--workers'?"),
        ("run --nope", "unknown flag '--nope'. See 'paceline run --help'."),
        ("--versoin", "unknown flag '--versoin': did you mean '--version'? See 'paceline --help'."),
        ("run --workers", "option '--workers' requires an argument."),
        ("show", "missing argument 'RUN'. See 'paceline show --help'."),
        ("runs extra", "got unexpected extra argument"),
        ("run --workers two", "--workers 'two': must be a whole number."),
        ("demo --epochs 0", "--epochs 0: must be at least 1."),
        ("launch -n two --servers 1 x.py", "--workers 'two': must be a whole number."),
        ("launch -n 2 nowhere.py --debug", "there is no script 'nowhere.py'."),
        ("run --spec nowhere.toml", "cannot read spec file 'nowhere.toml'"),
        ("show nope", "there is no run in"),
    ],
)
def test_a_wrong_request_is_one_sentence_and_exit_code_2(
    paceline: Callable[..., Any], arguments: str, sentence: str
) -> None:
    told = paceline(*arguments.split())
    assert (told.code, told.out) == (2, "")
    assert f"paceline: {sentence}" in told.err.splitlines()[0]
    assert "Traceback" not in told.err


def test_an_error_of_the_run_decides_the_exit_code(paceline: Callable[..., Any], api: Any) -> None:
    api.error = DataError("'x.gz' is cut short.")
    assert paceline("run").code == 2
    api.error = RunFailed("the port 7000 is in use.")
    told = paceline("run", "--json")
    assert (told.code, told.out, told.err) == (1, "", "paceline: the port 7000 is in use.\n")


def test_a_dead_role_shows_its_last_words(paceline: Callable[..., Any], api: Any) -> None:
    api.error = RoleDied("worker-1", "was killed by signal 9.", ["epoch 3", "[oh] no"])
    told = paceline("run")
    assert told.code == 1
    assert told.err == "  epoch 3\n  [oh] no\npaceline: worker-1 was killed by signal 9.\n"


def test_a_bug_is_told_plainly_and_shown_only_on_request(
    paceline: Callable[..., Any], api: Any
) -> None:
    api.error = KeyError("gone")
    told, shown = paceline("run"), paceline("run", "--debug")
    assert told.code == shown.code == 1
    assert (
        told.err == "paceline: unexpected KeyError: 'gone' (this is a bug; --debug shows where).\n"
    )
    assert shown.err.startswith("Traceback")


def test_ctrl_c_is_exit_code_130(paceline: Callable[..., Any], api: Any) -> None:
    api.error = KeyboardInterrupt()
    told = paceline("run")
    assert (told.code, told.out, told.err) == (130, "", "")


def run_process(root: Path, arguments: str, stdout: int, **env: str) -> tuple[str, str]:
    """The command line in a process of its own, where one damaged run is listed."""
    (root / "runs" / "broken").mkdir(parents=True)
    done = subprocess.run(
        [sys.executable, "-m", "paceline.cli", *arguments.split()],
        cwd=root,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **env},
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        timeout=30,
        check=False,
    )
    return done.stdout, done.stderr


@pytest.mark.parametrize("arguments", ["run --help", "runs", "runs --json"])
def test_a_reader_that_has_enough_is_no_error(tmp_path: Path, arguments: str) -> None:
    read, write = os.pipe()
    os.close(read)
    _, err = run_process(tmp_path, arguments, write)
    os.close(write)
    assert err == ""


def test_a_terminal_without_our_signs_gets_its_tables(tmp_path: Path) -> None:
    out, err = run_process(tmp_path, "runs", subprocess.PIPE, PYTHONIOENCODING="ascii")
    assert err == ""
    assert "damaged" in out
