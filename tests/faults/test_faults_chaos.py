"""The short version of `make chaos`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from paceline.spec.inject import injection
from tools.chaos import any_trial, crews

ROOT = Path(__file__).resolve().parents[2]


def test_every_crew_and_every_kind_of_fault_comes_up() -> None:
    known = crews()
    assert {"ps-sync-tcp", "ps-async-tcp", "ps-async-shm", "ssp-tcp", "ssp-shm"} <= set(known)
    trials = [any_trial(Random(f"0/{number}"), known) for number in range(200)]
    assert {trial.crew for trial in trials} == set(known)
    faults = [injection(trial.fault) for trial in trials]
    assert {(fault.kind, fault.step is None) for fault in faults} == {
        *(("kill", True), ("kill", False), ("stop", True), ("stop", False)),
        *(("cut", True), ("mute", True)),
    }
    assert {fault.role.partition("-")[0] for fault in faults} == {"worker", "server", "standby"}
    assert trials == [any_trial(Random(f"0/{number}"), known) for number in range(200)]


@pytest.mark.parallel
@pytest.mark.timeout(60, method="signal")
def test_a_run() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tools.chaos", "--runs", "1", "--seed", "15"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "median" in done.stdout
