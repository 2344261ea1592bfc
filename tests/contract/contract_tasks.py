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

    def __init__(self, samples: int = 203) -> None:
        self.samples = samples

    def model(self) -> nn.Module:
        return nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 3))

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


class Wide(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.zeros(1001))


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
