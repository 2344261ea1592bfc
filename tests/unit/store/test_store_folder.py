"""RunFolder: made whole or not at all, read at any time."""

from __future__ import annotations

import errno
import json
import math
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

import paceline
from paceline.errors import RequestError, StoreError
from paceline.spec import RunSpec
from paceline.store import origin
from paceline.store.folder import RunFolder
from paceline.types import (
    Disk,
    Event,
    Facts,
    Gpu,
    HostResources,
    Nic,
    Resources,
    Score,
    Traffic,
)

SPEC = RunSpec(task="softmax", strategy="ps-async", workers=2)
FACTS = Facts(parameters=7850, samples=60000, batch=200, epochs=1, lr=0.5, optimizer="sgd")


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path, SPEC)


def test_name_tells_what_and_when(folder: RunFolder) -> None:
    assert re.fullmatch(r"\d{8}-\d{6}-softmax-ps-async-2w", folder.name)


def test_label_and_own_tasks_make_plain_names(tmp_path: Path) -> None:
    labelled = RunFolder.create(tmp_path, SPEC, label="my sweep/1: ../x")
    assert re.fullmatch(r"\d{8}-\d{6}-my-sweep-1-..-x", labelled.name)
    assert labelled.path.parent == tmp_path
    own = RunFolder.create(tmp_path, SPEC.with_(task="json:Task"))
    assert own.name.endswith("-Task-ps-async-2w")


def test_spec_json_holds_all_that_repeats_a_run(folder: RunFolder) -> None:
    about = folder.read_spec()
    assert about["spec"] == SPEC.model_dump()
    assert about["resolved"] is None
    assert set(about) == {
        *("paceline", "spec", "resolved", "facts", "versions", "host", "commit", "command"),
        *("started", "id", "given"),
    }
    assert about["paceline"] == paceline.__version__
    assert about["versions"]["torch"]
    assert set(about["host"]) == {"name", "cores", "usable", "cpu", "memory_bytes", "os"}
    assert about["command"] == sys.argv
    assert (folder.path / "steps").is_dir()
    assert (folder.path / "logs").is_dir()


def test_spec_is_as_asked_then_as_resolved(folder: RunFolder) -> None:
    assert folder.spec == SPEC
    resolved = SPEC.with_(batch=200, epochs=1, lr=0.5, optimizer="sgd")
    folder.write_resolved(resolved, FACTS)
    again = RunFolder.open(folder.path)
    assert again.spec == resolved
    assert again.read_spec()["spec"] == SPEC.model_dump()
    assert again.read_spec()["facts"]["parameters"] == 7850


def test_spec_is_read_though_the_task_file_is_gone(tmp_path: Path) -> None:
    task = tmp_path / "my.py"
    task.write_text("class Task: ...")
    folder = RunFolder.create(tmp_path / "runs", RunSpec(task=f"{task}:Task"))
    task.unlink()
    assert folder.spec.task == f"{task}:Task"


def test_spec_of_an_unknown_strategy_is_told(folder: RunFolder) -> None:
    about = folder.read_spec()
    about["spec"]["strategy"] = "gossip"
    (folder.path / "spec.json").write_text(json.dumps(about))
    with pytest.raises(StoreError, match="'gossip': another version"):
        _ = folder.spec


def test_twenty_at_once_get_twenty_names(tmp_path: Path) -> None:
    with ThreadPoolExecutor(20) as pool:
        folders = list(pool.map(lambda _: RunFolder.create(tmp_path, SPEC), range(20)))
    assert len({f.path for f in folders}) == 20
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(f.name for f in folders)
    assert all(f.read_live()["state"] == "starting" for f in folders)


@pytest.mark.parametrize("call", ["replace", "fsync", "rename", "mkdir"])
def test_full_disk_leaves_nothing_half_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, call, full)
        with pytest.raises(StoreError, match=r"no space left on device.* --out"):
            RunFolder.create(tmp_path, SPEC)
    assert list(tmp_path.iterdir()) == []


def test_a_root_that_is_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("")
    with pytest.raises(StoreError, match=r"cannot write '.*runs'.*--out"):
        RunFolder.create(tmp_path / "runs", SPEC)


def test_open_refuses_what_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"not a run's folder: it has no spec\.json"):
        RunFolder.open(tmp_path)
    (tmp_path / "spec.json").write_text('{"spec": 3}')
    with pytest.raises(StoreError, match="damaged: it has no spec"):
        RunFolder.open(tmp_path)


def test_live_file(folder: RunFolder) -> None:
    roles = [{"role": "worker-0", "pid": 5, "state": "done", "report": {"steps": 3}}]
    folder.write_live("done", os.getpid(), roles)
    live = folder.read_live()
    assert live["state"] == "done"
    assert live["roles"] == roles
    assert live["launcher"]["pid"] == os.getpid()
    with pytest.raises(ValueError, match="no state"):
        folder.write_live("flying", os.getpid(), [])


@pytest.mark.parametrize("content", ["", "[]", '{"state": "flying"}', '{"state": "done"}'])
def test_a_damaged_live_file_is_told(folder: RunFolder, content: str) -> None:
    (folder.path / "roles.json").write_text(content)
    with pytest.raises(StoreError, match=r"roles\.json' is damaged"):
        folder.read_live()


def test_records_round_trip_and_a_torn_last_line_is_left_out(folder: RunFolder) -> None:
    event = Event(time=1.0, role="worker-0", kind="died", detail="größer\nals")
    score = Score(time=2.0, role="worker-0", step=3, epoch=0.5, final=False, values={"loss": 0.5})
    used = [
        Resources(time=t, role="server-0", cpu_seconds=t, memory_bytes=9, sent=1, received=2)
        for t in (1.0, 2.0)
    ]
    used.append(replace(used[0], involuntary=7, traffic=(Traffic("worker-0", 3, 4, 1, None),)))
    host = HostResources(
        time=1.0,
        host="here",
        cores=(0.5, None),
        nics={"lo": Nic(1, 2)},
        disks={"sda": Disk(3, 4, 0.5)},
        pressure={"io": 0.25},
        gpus=(Gpu(index=0, uuid="GPU-1", slowed=("heat",)),),
    )
    folder.append_event(event)
    folder.append_score(score)
    folder.append_resources(used)
    folder.append_resources([])
    folder.append_host(host)
    again = RunFolder.open(folder.path)
    assert (again.events(), again.scores(), again.resources()) == ([event], [score], used)
    assert again.hosts() == [host]
    with (folder.path / "events.jsonl").open("a") as file:
        file.write('{"time": 3.0, "ro')
    assert again.events() == [event]
    folder.close()


def test_records_that_were_never_written_are_empty(folder: RunFolder) -> None:
    assert (folder.events(), folder.scores(), folder.resources()) == ([], [], [])
    assert folder.hosts() == []


def test_samples_with_fewer_fields_are_of_an_older_version(folder: RunFolder) -> None:
    old = {"time": 1.0, "role": "worker-0", "cpu_seconds": 1.0, "memory_bytes": 9}
    path = folder.path / "resources.jsonl"
    path.write_text(json.dumps(old | {"sent": 1, "received": 2}) + "\n")
    (found,) = folder.resources()
    assert (found.involuntary, found.peak_bytes, found.traffic) == (None, None, ())
    (folder.path / "hosts.jsonl").write_text('{"time": 1.0, "host": "here"}\n')
    assert folder.hosts() == [HostResources(time=1.0, host="here")]


@pytest.mark.parametrize(
    "line", ['{"time": 1.0}', '{"time": 1.0, "host": "a", "nics": 3}', '{"host": "a", "what": 1}']
)
def test_a_host_that_is_none_is_told(folder: RunFolder, line: str) -> None:
    (folder.path / "hosts.jsonl").write_text(line + "\n")
    with pytest.raises(StoreError, match=r"hosts\.jsonl' is damaged"):
        folder.hosts()


def test_a_loss_that_is_not_a_number_is_valid_json(folder: RunFolder) -> None:
    nan = {"loss": math.nan, "accuracy": 0.1}
    folder.append_score(Score(time=1, role="worker-0", step=1, epoch=1, final=True, values=nan))
    text = (folder.path / "scores.jsonl").read_text()
    assert json.loads(text, parse_constant=pytest.fail)["values"]["loss"] is None
    values = folder.scores()[0].values
    assert math.isnan(values["loss"])
    assert values["accuracy"] == 0.1
    folder.close()


def test_a_damaged_line_is_told(folder: RunFolder) -> None:
    (folder.path / "events.jsonl").write_text("{}}\n")
    with pytest.raises(StoreError, match=r"events\.jsonl' is damaged"):
        folder.events()
    (folder.path / "events.jsonl").write_text('{"other": 1}\n')
    with pytest.raises(StoreError, match=r"events\.jsonl' is damaged"):
        folder.events()


def test_full_disk_while_recording(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (Event(time=t, role="r", kind="k") for t in (1.0, 2.0))
    folder.append_event(first)
    real = os.write
    state = {"calls": 0}

    def full_after_ten_bytes(fd: int, data: memoryview) -> int:
        state["calls"] += 1
        if state["calls"] > 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(fd, bytes(data)[:10])

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full_after_ten_bytes)
        with pytest.raises(StoreError, match=r"events\.jsonl': no space left"):
            folder.append_event(second)
    folder.append_event(second)
    assert folder.events() == [first, second]
    folder.close()


def test_roles_that_stepped_come_in_order(folder: RunFolder) -> None:
    for number in (10, 2, 0):
        folder.steps_path(f"worker-{number}").touch()
    assert folder.stepped_roles() == ["worker-0", "worker-2", "worker-10"]


def test_result(folder: RunFolder) -> None:
    folder.write_result({"throughput": {"low": math.inf}})
    assert folder.read_result() == {"throughput": {"low": None}}


def test_a_sweep_is_no_run_and_is_told_how_to_go_on_with(tmp_path: Path) -> None:
    (tmp_path / "strong").mkdir()
    (tmp_path / "strong" / "study.json").touch()
    for name in ("strong", str(tmp_path / "strong")):
        with pytest.raises(RequestError, match=r"is a sweep, not a run: .*--resume strong goes on"):
            RunFolder.find(tmp_path, name)


def test_find(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RequestError, match=r"no run in .* yet"):
        RunFolder.find(tmp_path, "last")
    with pytest.raises(RequestError, match=r"'no/such' is not a run's folder"):
        RunFolder.find(tmp_path, "no/such")
    alpha, beta, last = (
        RunFolder.create(tmp_path, SPEC, label=label) for label in ("alpha", "beta", "alpine")
    )

    def found(name: str) -> Path:
        return RunFolder.find(tmp_path, name).path.resolve()

    assert found("last") == last.path
    assert found(alpha.name) == alpha.path
    assert found(str(beta.path)) == beta.path
    monkeypatch.chdir(beta.path)
    assert found(".") == beta.path
    assert found("beta") == beta.path
    assert found("alpi") == last.path
    with pytest.raises(RequestError, match=r"'alp' fits 2 runs .*alpha, .*alpine\."):
        found("alp")
    with pytest.raises(RequestError, match=rf"no run .* close to it: {beta.name[:-4]}.*beta"):
        found(beta.name.replace("beta", "bate"))
    with pytest.raises(RequestError, match="no run 'zzz'"):
        found("zzz")


def test_last_ignores_what_is_no_run(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path, SPEC)
    (tmp_path / "99999999-000000-notes").mkdir()
    assert RunFolder.find(tmp_path, "last").path == run.path


def test_commit_never_hangs_nor_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert origin.origin()["commit"] is None
    monkeypatch.setenv("PATH", str(tmp_path))
    assert origin.origin()["commit"] is None
    slow = tmp_path / "git"
    slow.write_text("#!/bin/sh\nexec /bin/sleep 30\n")
    slow.chmod(0o755)
    monkeypatch.setattr(origin, "GIT_SECONDS", 0.1)
    assert origin.origin()["commit"] is None


def test_commit_of_a_git_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    try:
        subprocess.run([*git, "init", "-q"], check=True)
        subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "one"], check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("git is not usable here")
    assert re.fullmatch(r"[0-9a-f]{40}", origin.origin()["commit"])


def test_these_rooms_do_not_import_torch() -> None:
    code = (
        "import sys, paceline.report.summary, paceline.store.listing, paceline.measure.resources\n"
        "import paceline.diagnose.scaling\n"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_only_one_takes_a_run_up(folder: RunFolder) -> None:
    other = RunFolder.open(folder.path)
    with (
        folder.alone(),
        pytest.raises(RequestError, match="being taken up by another command"),
        other.alone(),
    ):
        pass
    with other.alone():
        other.take_over(SPEC.with_(epochs=9))
    assert folder.read_spec()["spec"]["epochs"] == 9
    assert folder.state == "starting"
