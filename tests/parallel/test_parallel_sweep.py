"""A sweep of real runs that is killed half way, and goes on."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from paceline.store.sweeps import SweepFolder

STUDY = ("--task", "softmax", "--data", "synthetic:2000x20:3", "--batch", "20,40", "--epochs", "2")
COMMAND = (sys.executable, "-m", "paceline.cli", "sweep")


def start(root: Path, *flags: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*COMMAND, *flags, "--out", str(root), "--json", "--quiet"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def trials_of(root: Path, count: int, process: subprocess.Popen[str]) -> list[Any]:
    """The trials that are on disk, once there are so many."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        sweeps = [path for path in root.glob("*") if (path / "study.json").is_file()]
        trials = SweepFolder(sweeps[0]).trials() if sweeps else []
        if len(trials) >= count:
            return trials
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    raise AssertionError(f"{count} trials took too long")


@pytest.mark.parallel
def test_no_finished_cell_is_lost(tmp_path: Path) -> None:
    root = tmp_path / "runs"
    begun = start(root, *STUDY)
    trials_of(root, 2, begun)
    begun.kill()
    begun.communicate()
    folder = SweepFolder.find(root, "last")
    killed = folder.trials()
    assert folder.state == "lost"

    again = start(root, *STUDY)  # the same command goes on
    out, err = again.communicate(timeout=90)
    assert again.returncode == 0, err
    summary = json.loads(out)
    trials = folder.trials()
    assert trials[: len(killed)] == killed
    assert sorted((t.cell, t.repeat) for t in trials) == sorted(
        (cell, repeat) for cell in ("batch 20", "batch 40") for repeat in range(3)
    )
    assert (summary["status"], summary["trials"]["left"]) == ("done", 0)
    for cell in summary["cells"]:
        assert cell["throughput"]["low"] < cell["throughput"]["samples_per_second"]
        assert cell["seconds"]["epoch"]["value"] > 0
        assert cell["seconds"]["to_target"]["value"] > 0
        assert len(cell["trials"][0]["curve"]) >= 2
