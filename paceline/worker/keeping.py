"""A worker's part of a checkpoint: copied between two steps, written beside the next ones.

It holds what the exchange keeps (parameters, the update rule's state, the version), the model's
buffers, the random generators, and how far the worker is, which decides samples and rate.
"""

from __future__ import annotations

import contextlib
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from paceline.errors import TaskError
from paceline.exchange.base import Among, Exchange
from paceline.exchange.replica import Replica
from paceline.store.parts import Arrays, Seal, read_part
from paceline.transport.control import Control, Message
from paceline.transport.slate import COPY, WRITE, Slate
from paceline.worker.copies import Copies
from paceline.worker.randomness import random_states, set_random_states
from paceline.worker.writing import PartWriter

EXCHANGE, BUFFER = "exchange.", "buffer."
OFTEN = 30.0  # seconds between checkpoints below which memory for copies is worth keeping


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """How far a worker is: the next round, and what it has done, former lives included."""

    round: int = 0
    taken: int = 0  # steps
    samples: int = 0
    epoch: int = 0  # epochs done


class Keeper:
    """Copies at once, writes in a thread, and tells the supervisor what came of it."""

    def __init__(
        self,
        control: Control,
        replica: Replica,
        exchange: Exchange,
        every: float,
        slate: Slate,
    ) -> None:
        """A checkpoint each so many seconds."""
        self._slate = slate
        self._writer = PartWriter(control)
        self._copies = Copies(kept=0 < every < OFTEN)
        self._replica = replica
        self._exchange = exchange

    def prepare(self, among: Among) -> None:
        """Before the first step: make the first checkpoint as cheap as later ones.

        Memory that nobody has touched yet makes a copy ten times as slow, in the midst of training.
        """
        if self._copies.kept:
            with contextlib.suppress(MemoryError, RuntimeError):  # the checkpoint will tell of it
                self._exchange.keep(among, self._copies)

    def keep(self, asked: Message, position: Position) -> None:
        """Keep what is now, between two steps."""
        before = self._slate.at(WRITE)
        self._keep(asked, position)
        self._slate.back(before)

    def _keep(self, asked: Message, position: Position) -> None:
        if not self._writer.close():  # and what it writes from must stay as it is
            self._writer.refuse(asked, "the disk has not taken the checkpoint before")
            return
        self._slate.at(COPY)
        self._copies.begin()
        try:
            values, arrays = self._copy(position, Among(asked["place"], asked["of"]))
        except (MemoryError, RuntimeError) as wrong:  # torch's word for no memory is the latter
            self._writer.refuse(asked, f"no copy could be made: {wrong}")
            return
        how_far = {"step": position.taken, "epoch": position.epoch, "round": position.round}
        self._writer.write(asked, values, arrays, how_far)

    def _copy(self, position: Position, among: Among) -> tuple[dict[str, Any], Arrays]:
        randomness, arrays = random_states(self._replica.device)
        for name, tensor in self._exchange.keep(among, self._copies).items():
            arrays[EXCHANGE + name] = tensor.numpy()
        for name, buffer in self._replica.model.named_buffers():
            arrays[BUFFER + name] = _bytes(buffer).clone().numpy()
        return {"position": asdict(position), "random": randomness}, arrays

    def close(self) -> None:
        """Wait for what is being written."""
        self._slate.at(WRITE)
        self._writer.close()


def restore(kept: Message, replica: Replica, exchange: Exchange) -> Position:
    """Be the worker that kept this part, between the same two steps.

    Where servers know better how many steps of it count, it goes on after those.
    """
    values, arrays = read_part(Path(kept["path"]), Seal(bytes=kept["bytes"], digest=kept["digest"]))
    position = Position(**values["position"])
    exchange.round, exchange.taken = position.round, position.taken
    exchange.restore(
        {
            name.removeprefix(EXCHANGE): torch.from_numpy(array)
            for name, array in arrays.items()
            if name.startswith(EXCHANGE)
        }
    )
    _restore_buffers(replica.model, arrays)
    set_random_states(replica.device, values["random"], arrays)
    return replace(position, round=exchange.round, taken=exchange.taken)


def _restore_buffers(model: nn.Module, arrays: Arrays) -> None:
    kept = {name.removeprefix(BUFFER): a for name, a in arrays.items() if name.startswith(BUFFER)}
    buffers = dict(model.named_buffers())
    sizes = {name: _bytes(buffer).numel() for name, buffer in buffers.items()}
    if sizes != {name: array.size for name, array in kept.items()}:
        raise TaskError(
            "the checkpoint is of a model with other buffers: the task has changed since."
        )
    for name, buffer in buffers.items():
        found = torch.from_numpy(kept[name]).view(buffer.dtype).view(buffer.shape)
        with torch.no_grad():
            buffer.copy_(found)


def _bytes(tensor: Tensor) -> Tensor:
    """The tensor as bytes, whatever its type."""
    return tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
