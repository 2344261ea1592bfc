"""What else goes wrong: one sentence, the right exit code, and `paceline runs` still works."""

from __future__ import annotations

import gzip
import math
import os
import re
import socket
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from faults_tools import ALL, CREWS, FAULTY, flags, task

import paceline
from paceline.errors import DataError, PacelineError, RequestError, RoleDied, RunFailed, StoreError
from paceline.store.listing import list_runs

pytestmark = [pytest.mark.parallel, pytest.mark.timeout(60, method="signal")]


def one_sentence(command: Any, code: int) -> str:
    """What it told, after checking that it told it in the agreed way."""
    assert command.process.returncode == code, command.stderr
    assert command.stdout == ""
    assert "Traceback" not in re.sub(r"(?m)^  .*$", "", command.stderr)  # log lines are indented
    told = [line for line in command.stderr.splitlines() if line.startswith("paceline: ")]
    assert len(told) == 1, command.stderr
    assert told[0].endswith(".")
    return str(told[0])


def line_of(text: str) -> int:
    lines = FAULTY.read_text().splitlines()
    return next(number for number, line in enumerate(lines, start=1) if text in line)


# Tasks.


@pytest.mark.matrix(3)
@pytest.mark.parametrize("crew", [crew for crew in ALL if crew != "single"])
def test_a_task_that_raises_in_one_worker(crew: str, runs: Path) -> None:
    with pytest.raises(RoleDied) as died:
        paceline.fit(task("RaisesInOne"), epochs=1000, out=runs, **ALL[crew])
    told = str(died.value)
    assert told.startswith("worker-1 ")
    assert "ZeroDivisionError: the twentieth batch is cursed" in told
    assert f"faulty_tasks.py, line {line_of('is cursed')}" in told
    assert "\n" not in told
    assert [entry.state for entry in list_runs(runs)] == ["failed"]


@pytest.mark.thorough
def test_the_command_tells_it_with_the_last_lines_of_the_log(cli: Any) -> None:
    command = cli.run("run", "--task", task("RaisesInOne"), *flags(CREWS["ps-sync-shm"]))
    told = one_sentence(command, 1)
    assert "worker-1" in told
    assert "ZeroDivisionError: the twentieth batch is cursed" in told
    assert "  ZeroDivisionError: the twentieth batch is cursed" in command.stderr.splitlines()[-2]
    assert [run["state"] for run in cli.listed()] == ["failed"]
    assert cli.shown()["status"] == "failed"


@pytest.mark.matrix(1)
@pytest.mark.parametrize("crew", ["ps-sync-shm", "ps-async-tcp", "allreduce"])
def test_a_task_that_ends_its_process(crew: str, runs: Path) -> None:
    with pytest.raises(RoleDied, match=r"worker-1 .*ended with exit code 3"):
        paceline.fit(task("ExitsInOne"), epochs=1000, out=runs, **CREWS[crew])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("RaisesInModel", "RuntimeError: no such layer"),
        ("RaisesInData", "FileNotFoundError: no such samples"),
        ("RaisesInMetrics", "LookupError: no such metric"),
    ],
)
def test_a_task_that_raises_elsewhere(name: str, text: str, runs: Path) -> None:
    with pytest.raises(RunFailed) as failed:
        paceline.fit(task(name), out=runs, **CREWS["ps-async-tcp"])
    told = str(failed.value)
    assert re.match(r"worker-\d", told)
    assert text in told
    assert f"line {line_of(text.partition(': ')[2])}" in told


def test_an_evaluator_that_raises_is_named(runs: Path) -> None:
    with pytest.raises(RoleDied, match="evaluator failed with LookupError: no such metric"):
        paceline.fit(
            task("RaisesInMetrics"), epochs=100000, evaluator=True, out=runs, **CREWS["ps-sync-shm"]
        )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("NoSamples", "no training samples"),
        ("Halves", "float16"),
        ("Uneven", "the same model and data in every worker"),
    ],
)
def test_a_task_that_cannot_be_trained(name: str, text: str, runs: Path) -> None:
    with pytest.raises(RequestError, match=text):
        paceline.fit(task(name), out=runs, **CREWS["ps-sync-shm"])
    assert [entry.state for entry in list_runs(runs)] == ["failed"]


# Requests.


def test_a_batch_larger_than_the_data(runs: Path) -> None:
    with pytest.raises(RequestError, match="larger than the data, which has 4,000 samples"):
        paceline.fit(task("Plain"), batch=4001, out=runs)


def test_more_servers_than_parameters(runs: Path) -> None:
    with pytest.raises(RequestError, match="--servers 28: more than the model's parameters"):
        paceline.fit(task("Plain"), strategy="ps-sync", workers=2, servers=28, out=runs)


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ("--workers 0 --strategy ps-sync", "--workers 0"),
        ("--servers 2", "--servers 2: strategy 'single' has no servers"),
        ("--batch 60001", "--batch 60001: larger than the data"),
    ],
)
def test_a_wrong_request_is_told_by_the_command(asked: str, text: str, cli: Any) -> None:
    assert text in one_sentence(cli.run("run", *asked.split()), 2)


@pytest.mark.thorough
def test_a_port_in_use(cli: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        asked = ("--strategy", "ps-sync", "--transport", "tcp", "--port", port)
        told = one_sentence(cli.run("run", "--task", task("Plain"), *asked), 1)
    assert f"127.0.0.1:{port}" in told
    assert "in use" in told
    assert "--port" in told


# Data.

FILES = (
    "train-images-idx3-ubyte.gz",
    "train-labels-idx1-ubyte.gz",
    "t10k-images-idx3-ubyte.gz",
    "t10k-labels-idx1-ubyte.gz",
)


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """A data set as MNIST is laid out, of twenty samples."""
    folder = tmp_path / "data"
    folder.mkdir()
    for name in FILES:
        shape = (20, 28, 28) if "images" in name else (20,)
        head = struct.pack(f">BBBB{len(shape)}I", 0, 0, 8, len(shape), *shape)
        (folder / name).write_bytes(gzip.compress(head + bytes(math.prod(shape))))
    return folder


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def test_whole_data_files_are_fine(data_dir: Path, runs: Path) -> None:
    run = paceline.fit(
        "softmax", data="fashion-mnist", data_dir=str(data_dir), batch=5, epochs=1, out=runs
    )
    assert run.status == "done"


@pytest.mark.parametrize("victim", FILES)
def test_a_data_file_cut_short(victim: str, data_dir: Path, runs: Path) -> None:
    cut_short(data_dir / victim)
    with pytest.raises(DataError, match=victim):
        paceline.fit("softmax", data="fashion-mnist", data_dir=str(data_dir), batch=5, out=runs)
    assert list_runs(runs) == []


def test_the_command_names_the_file(data_dir: Path, cli: Any) -> None:
    cut_short(data_dir / FILES[0])
    asked = ("--data", "fashion-mnist", "--data-dir", data_dir)
    assert FILES[0] in one_sentence(cli.run("run", "--task", "softmax", *asked), 2)
    assert not (cli.cwd / "runs").exists()


# Disks.


def test_a_folder_that_is_a_file(runs: Path) -> None:
    runs.write_text("")
    with pytest.raises(StoreError, match="runs"):
        paceline.fit(task("Plain"), steps=1, out=runs)


def mounted(place: Path, options: str) -> Path:
    """A small disk of its own at `place`, where that is possible."""
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", options, "paceline-test", str(place)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only root can mount a small disk")
    return place


@pytest.fixture
def tiny_disk(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A disk for the runs, so small that it is soon full."""
    place = mounted(tmp_path / "disk", f"size={request.param}")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.fixture
def locked(tmp_path: Path) -> Iterator[Path]:
    """A folder nobody may write, root neither."""
    if os.geteuid() != 0:
        (tmp_path / "locked").mkdir(mode=0o500)
        yield tmp_path / "locked"
        return
    place = mounted(tmp_path / "locked", "ro")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_folder_that_cannot_be_written(locked: Path) -> None:
    with pytest.raises(StoreError, match=r"locked.*--out") as wrong:
        paceline.fit(task("Plain"), steps=1, out=locked)
    assert wrong.value.exit_code == 1
    assert list_runs(locked) == []


@pytest.mark.matrix(5)
@pytest.mark.parametrize("tiny_disk", ["4k", "12k", "32k", "48k", "128k"], indirect=True)
@pytest.mark.parametrize("crew", ["single", "ps-sync-shm", "ps-async-tcp"])
def test_a_full_disk(tiny_disk: Path, crew: str) -> None:
    with pytest.raises(PacelineError) as wrong:
        paceline.fit(task("Plain"), epochs=100000, out=tiny_disk, **CREWS[crew])
    told = str(wrong.value)
    assert wrong.value.exit_code == 1
    assert str(tiny_disk) in told
    assert "no space left" in told
    assert "--out" in told
    assert "\n" not in told
    for entry in list_runs(tiny_disk):
        assert entry.state != "done"


@pytest.mark.thorough
@pytest.mark.parametrize("tiny_disk", ["64k"], indirect=True)
def test_the_command_tells_a_full_disk(tiny_disk: Path, cli: Any) -> None:
    asked = (*flags(CREWS["ps-sync-shm"]), "--epochs", "100000", "--out", tiny_disk)
    told = one_sentence(cli.run("run", "--task", task("Plain"), *asked), 1)
    assert str(tiny_disk) in told
    assert "no space left" in told
    assert cli.run("runs", "--out", tiny_disk).process.returncode == 0
    assert len(list_runs(tiny_disk)) == 1
