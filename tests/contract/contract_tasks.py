"""Small tasks whose results are known."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import paceline


class Net(paceline.Task):
    """Two layers on noise with a rule in it; `samples` decides how uneven the tails are."""

    lr = 0.1
    epochs = 1

    def __init__(self, samples: int = 203, width: int = 16) -> None:
        self.samples = samples
        self.width = width

    def model(self) -> nn.Module:
        return nn.Sequential(nn.Linear(6, self.width), nn.Tanh(), nn.Linear(self.width, 3))

    def data(self) -> paceline.Data:
        make = torch.Generator().manual_seed(11)
        x = torch.randn(self.samples + 50, 6, generator=make)
        y = (x[:, 0] > 0).long() + (x[:, 1] > 0.5).long()
        train, test = slice(0, self.samples), slice(self.samples, None)
        return paceline.Data(
            train=paceline.Arrays(x[train], y[train]), test=paceline.Arrays(x[test], y[test])
        )


class Slow(Net):
    """Slow enough that an evaluator sees it train."""

    def loss(self, model: nn.Module, batch: Any) -> Tensor:
        time.sleep(0.004)
        return super().loss(model, batch)


class SlowNormed(Slow):
    """Has state that is not trained: running means."""

    def model(self) -> nn.Module:
        return nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 3))


def role() -> str:
    """Which role this process is: its standard error goes to that role's log."""
    return Path("/proc/self/fd/2").readlink().stem


class Absent(Net):
    """One worker comes to its first round only when the others have had all of theirs."""

    def __init__(self, samples: int, absent: str, rounds: int, folder: Path, others: int) -> None:
        super().__init__(samples)
        self.absent, self.rounds, self.folder, self.others = absent, rounds, folder, others
        self.taken = 0

    def loss(self, model: nn.Module, batch: Any) -> Tensor:
        self.taken += 1
        if role() == self.absent:
            while len(list(self.folder.iterdir())) < self.others:
                time.sleep(0.01)
            time.sleep(0.5)  # they have begun their last round, not ended it
        elif self.taken == self.rounds:
            (self.folder / role()).touch()
        return super().loss(model, batch)


class Wide(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.zeros(1001))


class Wider(nn.Module):
    """Several blocks, sent while backward makes the others; two parameters share one of them."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.zeros(700_001))
        self.more = nn.Parameter(torch.zeros(500_000))


class Counting(paceline.Task):
    """Every gradient is −1 everywhere: with `lr=1.0` given, the parameters count the updates.

    Notes which rows each step saw in `seen`, a file a process.
    """

    lr = 1.0
    batch = 4

    def __init__(self, samples: int, seen: Path | None = None) -> None:
        self.samples = samples
        self.seen = seen

    def model(self) -> nn.Module:
        return Wide()

    def data(self) -> paceline.Data:
        rows = torch.arange(self.samples)
        return paceline.Data(train=paceline.Arrays(rows), test=paceline.Arrays(rows[:1]))

    def loss(self, model: nn.Module, batch: Any) -> Tensor:
        if self.seen is not None:
            with (self.seen / str(os.getpid())).open("a") as file:
                file.write("".join(f"{row}\n" for row in batch[0].tolist()))
        return -model.weights.sum()

    def metrics(self, model: nn.Module, batch: Any) -> dict[str, Tensor | float]:
        return {"updates": model.weights.mean()}


class Lagging(Counting):
    """Counts, and one worker takes its time."""

    def __init__(self, samples: int, slow: str, seconds: float, others: float = 0.002) -> None:
        super().__init__(samples)
        self.slow, self.seconds, self.others = slow, seconds, others

    def loss(self, model: nn.Module, batch: Any) -> Tensor:
        time.sleep(self.seconds if role() == self.slow else self.others)
        return super().loss(model, batch)


class CountingMuch(Counting):
    """Counts in a model that is large enough to be sent in blocks."""

    def model(self) -> nn.Module:
        return Wider()

    def loss(self, model: nn.Module, batch: Any) -> Tensor:
        return -(model.weights.sum() + model.more.sum())
