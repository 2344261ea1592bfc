"""Parameters out of a worker: to a file at the end, to the evaluator in between."""

from __future__ import annotations

import os
from pathlib import Path

import torch

from paceline.errors import StoreError
from paceline.exchange.replica import Replica
from paceline.files import replacing
from paceline.store.faults import cannot_write
from paceline.transport import memory


def save_parameters(path: Path, replica: Replica) -> None:
    """The model's state, loadable with `torch.load(path, weights_only=True)`.

    Cloned first: a view would drag the whole flat buffer into the file. Of a very large table the
    rows in use are saved, as a sparse tensor.
    """
    there = [table for table in replica.tables if table.view is not None]
    large = {t.name: t for t in there if t.parameter.numel() > memory.LARGE}
    state = {
        name: large[name].rows_in_use() if name in large else value.detach().cpu().clone()
        for name, value in replica.model.state_dict().items()
    }
    try:
        with replacing(path) as file:
            torch.save(state, file)
    except OSError as wrong:
        raise cannot_write(path, wrong) from wrong
    except RuntimeError as wrong:  # torch's own word for a full disk
        raise StoreError(f"cannot write '{path}': {str(wrong).splitlines()[0]}.") from wrong


def snapshot_floats(replica: Replica) -> int:
    return replica.size + sum(b.numel() for b in replica.buffers)


def write_snapshot(fd: int, replica: Replica) -> None:
    """Copy parameters and buffers to the segment the evaluator reads."""
    total = snapshot_floats(replica)
    if os.fstat(fd).st_size < total * memory.FLOAT_BYTES:
        memory.size_segment(fd, total)
    out = memory.floats(fd, (total,))
    out[: replica.size].copy_(replica.flat)
    at = replica.size
    for buffer in replica.buffers:
        out[at : at + buffer.numel()].copy_(buffer.reshape(-1))
        at += buffer.numel()


def read_snapshot(fd: int, replica: Replica) -> None:
    """Take parameters and buffers from the segment."""
    source = memory.floats(fd, (snapshot_floats(replica),))
    replica.flat.copy_(source[: replica.size])
    at = replica.size
    for buffer in replica.buffers:
        buffer.copy_(source[at : at + buffer.numel()].view(buffer.shape))
        at += buffer.numel()
