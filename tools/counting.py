"""A task that counts how often each sample was trained on. Used by path, from another process."""

from __future__ import annotations

import time
from typing import Any

import torch
from torch import Tensor, nn

import paceline


class Ledger(nn.Module):
    """A number for every sample, and maybe others between them."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.seen = nn.Parameter(torch.zeros(count))


class Counting(paceline.Task):
    """Adds 1 to a sample's number whenever the sample is trained on, at a rate of the batch."""

    batch = 10
    samples = 400
    apart = 1  # of how many parameters one is a sample's
    seconds = 0.004

    def model(self) -> nn.Module:
        return Ledger(self.samples * self.apart)

    def data(self) -> paceline.Data:
        rows = torch.arange(self.samples)
        return paceline.Data(train=paceline.Arrays(rows), test=paceline.Arrays(rows[:1]))

    def loss(self, model: nn.Module, batch: Any) -> Tensor:
        time.sleep(self.seconds)
        (rows,) = batch
        return -model.seen[rows * self.apart].mean()


class Wide(Counting):
    """So many parameters that a push takes a while: faults come in the middle of it."""

    apart = 4000


class Middle(Counting):
    """Too many parameters for every worker to apply all of them, and few enough to copy."""

    apart = 400


class Rowed(nn.Module):
    """A row of a sparse table for every sample, and something dense beside them."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.seen = nn.Embedding(count, 1, sparse=True)
        self.all = nn.Parameter(torch.zeros(1))
        nn.init.zeros_(self.seen.weight)


class Rows(Counting):
    """The same with numbers that are rows of a sparse table; every sample counts in `all`, too."""

    def model(self) -> nn.Module:
        return Rowed(self.samples)

    def loss(self, model: nn.Module, batch: Any) -> Tensor:
        time.sleep(self.seconds)
        (rows,) = batch
        return -model.seen(rows).mean() - model.all.sum()
