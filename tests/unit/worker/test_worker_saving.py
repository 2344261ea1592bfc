"""Parameters out of a worker: into a file, and to the evaluator."""

from __future__ import annotations

import os
from pathlib import Path

import torch
from torch import nn

from paceline.exchange.replica import Replica
from paceline.transport import memory
from paceline.worker.saving import read_snapshot, save_parameters, write_snapshot


def model() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))


def test_a_saved_model_loads_and_has_no_more_than_its_own(tmp_path: Path) -> None:
    replica = Replica(model())
    path = tmp_path / "final.pt"
    save_parameters(path, replica)
    other = model()
    other.load_state_dict(torch.load(path, weights_only=True))
    for mine, theirs in zip(replica.model.parameters(), other.parameters(), strict=True):
        assert torch.equal(mine, theirs)
    for value in torch.load(path, weights_only=True).values():
        assert value.untyped_storage().nbytes() == value.nbytes


def test_a_snapshot_carries_parameters_and_running_means() -> None:
    fd = memory.new_segment("test")
    worker, evaluator = Replica(model()), Replica(model())
    for _ in range(2):  # the segment is sized by the first
        worker.model(torch.randn(8, 3))
        write_snapshot(fd, worker)
        read_snapshot(fd, evaluator)
        assert torch.equal(worker.flat, evaluator.flat)
        assert torch.equal(worker.model[1].running_mean, evaluator.model[1].running_mean)
        assert torch.equal(worker.model[1].running_var, evaluator.model[1].running_var)
    os.close(fd)
