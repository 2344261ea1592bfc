"""A sweep of real runs that is interrupted, killed, and goes on each time."""

from __future__ import annotations

import json
import signal
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
    begun = start(root, *STUDY, "--repeats", "4")
    trials_of(root, 1, begun)
    begun.send_signal(signal.SIGINT)
    assert begun.wait(60) == 130
    begun.communicate()
    folder = SweepFolder.find(root, "last")
    stopped = folder.trials()
    assert folder.state == "stopped"
    assert json.loads((folder.path / "result.json").read_text())["trials"]["done"] == len(stopped)

    again = start(root, *STUDY, "--repeats", "4")  # the same command goes on
    trials_of(root, len(stopped) + 2, again)
    again.kill()
    again.communicate()
    killed = folder.trials()
    assert folder.state == "lost"
    assert killed[: len(stopped)] == stopped

    last = start(root, "--resume", "last")
    out, err = last.communicate(timeout=90)
    assert last.returncode == 0, err
    summary = json.loads(out)
    trials = folder.trials()
    assert trials[: len(killed)] == killed
    assert sorted((t.cell, t.repeat) for t in trials) == sorted(
        (cell, repeat) for cell in ("batch 20", "batch 40") for repeat in range(4)
    )
    assert (summary["status"], summary["trials"]["left"]) == ("done", 0)
    for cell in summary["cells"]:
        assert cell["throughput"]["low"] < cell["throughput"]["samples_per_second"]
        assert cell["seconds"]["epoch"]["value"] > 0
        assert cell["seconds"]["to_target"]["value"] > 0
        assert len(cell["trials"][0]["curve"]) >= 2
