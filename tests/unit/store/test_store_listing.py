"""list_runs: every run, the broken ones too, quickly."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from paceline.spec import RunSpec
from paceline.store.folder import RunFolder
from paceline.store.listing import RunEntry, list_runs

SPEC = RunSpec(task="softmax", strategy="ps-async", workers=2)
RESULT = {
    "throughput": {"samples_per_second": 1000.5},
    "quality": {"accuracy": 0.92},
    "seconds": {"total": 3},
}


def edit(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def only(root: Path) -> RunEntry:
    (entry,) = list_runs(root)
    return entry


def test_no_folder_no_runs(tmp_path: Path) -> None:
    assert list_runs(tmp_path / "none") == []


def test_an_entry_tells_what_is_known(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, SPEC)
    entry = only(tmp_path)
    assert (entry.state, entry.samples_per_second) == ("starting", None)
    folder.write_live("done", os.getpid(), [])
    folder.write_result(RESULT)
    entry = only(tmp_path)
    assert entry.started is not None
    assert entry == RunEntry(
        name=folder.name,
        path=folder.path,
        state="done",
        task="softmax",
        strategy="ps-async",
        workers=2,
        started=entry.started,
        samples_per_second=1000.5,
        accuracy=0.92,
        seconds=3.0,
    )


def test_newest_first(tmp_path: Path) -> None:
    names = [RunFolder.create(tmp_path, SPEC).name for _ in range(4)]
    assert [entry.name for entry in list_runs(tmp_path)] == names[::-1]


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("spec.json", None),
        ("spec.json", ""),
        ("spec.json", "[1]"),
        ("spec.json", '{"spec": []}'),
        ("spec.json", b"\xff\xfe"),
        ("roles.json", None),
        ("roles.json", '{"state": "running", "launcher": 5, "roles": []}'),
        ("roles.json", '{"state": [], "launcher": {}, "roles": [3]}'),
        ("result.json", "{"),
    ],
)
def test_a_damaged_run_is_listed_as_such(
    tmp_path: Path, file: str, content: str | bytes | None
) -> None:
    damaged = RunFolder.create(tmp_path, SPEC)
    sound = RunFolder.create(tmp_path, SPEC)
    path = damaged.path / file
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    entries = {entry.name: entry for entry in list_runs(tmp_path)}
    assert entries[damaged.name].state == "damaged"
    assert file in entries[damaged.name].why
    assert entries[sound.name].state == "starting"


def test_odd_values_do_not_raise(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, SPEC)
    RunFolder.create(tmp_path, SPEC)
    edit(folder.path / "spec.json", started=5, spec={"workers": "many"})
    folder.write_result({"throughput": 3, "quality": {"accuracy": "good"}})
    entry = next(e for e in list_runs(tmp_path) if e.name == folder.name)
    assert (entry.started, entry.workers, entry.accuracy) == (None, None, None)


def test_a_run_whose_launcher_is_gone_is_lost(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, SPEC)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as launcher:
        folder.write_live("running", launcher.pid, [])
        assert only(tmp_path).state == "running"
        launcher.kill()
        time.sleep(0.1)  # dead, and not yet reaped
        assert only(tmp_path).state == "lost"
    assert only(tmp_path).state == "lost"


def test_a_run_whose_launchers_pid_was_reused_is_lost(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, SPEC)
    folder.write_live("running", os.getpid(), [])
    known = folder.read_live()["launcher"]
    edit(folder.path / "roles.json", launcher=known | {"created": known["created"] - 3600})
    assert only(tmp_path).state == "lost"


def test_a_launcher_on_another_host_is_taken_at_its_word(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, SPEC)
    elsewhere = {"pid": 2**22 + 1, "created": 1.0, "host": platform.node() + "-other"}
    edit(folder.path / "roles.json", state="running", launcher=elsewhere)
    assert only(tmp_path).state == "running"


@pytest.mark.parametrize("pid", [-1, 0, 2**22 + 1, 2**70])
def test_impossible_pids_are_dead(tmp_path: Path, pid: int) -> None:
    folder = RunFolder.create(tmp_path, SPEC)
    gone = {"pid": pid, "created": 1.0, "host": platform.node()}
    edit(folder.path / "roles.json", state="running", launcher=gone)
    assert only(tmp_path).state == "lost"


def test_five_hundred_runs(tmp_path: Path) -> None:
    """Told, not asserted: this machine is shared."""
    model = RunFolder.create(tmp_path, SPEC)
    model.write_live("done", os.getpid(), [{"role": f"worker-{i}"} for i in range(4)])
    model.write_result(RESULT)
    for i in range(499):
        copy = tmp_path / f"{model.name}-{i + 2}"
        copy.mkdir()
        for file in ("spec.json", "roles.json", "result.json"):
            shutil.copy(model.path / file, copy / file)
    begin = time.perf_counter()
    assert len(list_runs(tmp_path)) == 500
    print(f"list_runs of 500: {1e3 * (time.perf_counter() - begin):.0f} ms")  # noqa: T201
