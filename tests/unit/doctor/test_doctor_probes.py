"""Every probe finds something here, in a moment. How much, no test can know."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

from paceline.diagnose.doctor.threads import candidates
from paceline.doctor import bandwidth, core_speed, disk, loopback, shared, threads, torch_build
from paceline.doctor.asked import Asked
from paceline.doctor.gpu_speed import compared, measure
from paceline.errors import TaskError
from paceline.measure.cores import my_cores

pytestmark = [pytest.mark.parallel, pytest.mark.timeout(60, method="signal")]

SOFTMAX = {"task": "softmax", "data": "synthetic:500x1x8x8:3", "batch": 20}


@pytest.fixture
def asked(tmp_path: Path) -> Asked:
    return Asked(folder=str(tmp_path / "runs"), spec=SOFTMAX, quick=True)


def test_every_core_has_a_speed_and_the_process_may_run_where_it_did(asked: Asked) -> None:
    before = my_cores()
    (found,) = core_speed.measure(asked, 0.1)
    assert [device.name for device in found.devices] == [f"core {core}" for core in before]
    assert all(device.speed.value > 1e6 for device in found.devices)
    assert all(0 <= (device.taken or 0) < 1 for device in found.devices)
    assert my_cores() == before


def test_memory_has_a_bandwidth(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bandwidth, "_size", lambda cores: 4 << 20)
    found = bandwidth.measure(asked, 0.1)
    assert found.one.value > 1e8
    assert found.all.value > 1e8
    assert found.cores == len(my_cores())


def test_copies_fit_the_memory_and_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bandwidth, "last_level", lambda _: 256 << 20)
    monkeypatch.setattr(bandwidth, "free_memory", lambda: 64 << 30)
    assert bandwidth._size(8) == 128 << 20
    monkeypatch.setattr(bandwidth, "free_memory", lambda: 1 << 30)
    assert bandwidth._size(8) == 16 << 20


def test_a_word_goes_to_another_process_and_back(asked: Asked) -> None:
    before = my_cores()
    found = shared.measure(asked, 0.1)
    assert 0 < found.latency.value < 1
    assert my_cores() == before


def test_the_loopback_is_measured_through_another_process(asked: Asked) -> None:
    found = loopback.measure(asked, 0.2)
    assert found.push.value > 1e6
    assert found.address.startswith("127.0.0.1:")


def test_the_disk_is_measured_and_nothing_is_left(asked: Asked, tmp_path: Path) -> None:
    found = disk.measure(asked, 0.2)
    assert found.write.value > 0
    assert found.read.value > 0
    assert found.sync.value > 0
    assert 0 < found.free <= found.total
    assert list(tmp_path.iterdir()) == []


def test_a_file_system_without_nameless_files_is_measured_too(
    asked: Asked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "O_TMPFILE")
    assert disk.measure(asked, 0.1).write.value > 0
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_told(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "SHARE", 0.0)
    with pytest.raises(RuntimeError, match="too little space"):
        disk.measure(asked, 0.1)


def test_threads_are_tried_in_turns_and_put_back(asked: Asked) -> None:
    before = torch.get_num_threads()
    found = threads.measure(asked, 0.2)
    assert [count.threads for count in found.counts] == candidates(len(my_cores()), before)
    assert (found.task, found.batch) == ("softmax", 20)
    assert all(count.rate.value > 0 for count in found.counts)
    assert torch.get_num_threads() == before


def test_sparse_tables_are_updated_too(asked: Asked) -> None:
    spec = {"task": "sparse-logreg", "data": "clicks:2000", "features": 1000, "batch": 50}
    found = threads.measure(Asked(folder=".", spec=spec), 0.05)
    assert found.counts[0].rate.value > 0


def test_a_task_that_cannot_be_made_says_why() -> None:
    spec = {"task": "lenet", "data": "synthetic:100x5:2"}
    with pytest.raises(TaskError, match="needs images"):
        threads.measure(Asked(folder=".", spec=spec), 0.05)


def test_how_torch_was_built(asked: Asked) -> None:
    found = torch_build.measure(asked, 0.0)
    assert found.threads >= 1
    assert found.instructions


def test_products_are_compared_device_by_device(asked: Asked) -> None:
    """On the CPU twice, since there need be no GPU: the way is the same."""
    cpu = torch.device("cpu")
    found = compared("CPU", ["a", "b"], [cpu, cpu], 0.1, lambda _: 1410.0, side=32)
    assert [device.clock for device in found.devices] == [1410.0, 1410.0]
    assert all(device.speed.value > 0 for device in found.devices)
    if not torch.cuda.is_available():
        assert measure(asked, 0.1) == ()
