"""Tasks that are slow in one way, on purpose: see situations.py."""

from __future__ import annotations

import time
from dataclasses import replace

from torch import nn

from paceline.data.base import Batch, Data, Rows, Samples
from paceline.data.open import open_data
from paceline.tasks.base import Task

FEATURES = 256


class Work(Task):
    """Enough to compute, little to exchange."""

    data_name = f"synthetic:4000x{FEATURES}:10"
    lr = 0.01

    def model(self) -> nn.Module:
        wide = 512
        return nn.Sequential(
            *(nn.Linear(FEATURES, wide), nn.ReLU()),
            *(nn.Linear(wide, wide), nn.ReLU(), nn.Linear(wide, 10)),
        )


class Wide(Work):
    """Many parameters for what there is to compute."""

    def model(self) -> nn.Module:
        return nn.Sequential(nn.Linear(FEATURES, 2048), nn.ReLU(), nn.Linear(2048, 10))


class Narrow(Work):
    """A few hundred kilobytes to exchange, in no time to compute."""

    def model(self) -> nn.Module:
        return nn.Sequential(nn.Linear(FEATURES, 256), nn.ReLU(), nn.Linear(256, 10))


class Sleepy(Samples):
    """Samples that take a while to come, whatever the cores do."""

    def __init__(self, samples: Samples, seconds: float) -> None:
        self._samples = samples
        self._seconds = seconds

    def __len__(self) -> int:
        return len(self._samples)

    def batch(self, rows: Rows) -> Batch:
        time.sleep(self._seconds)
        return self._samples.batch(rows)


class Throttled(Narrow):
    """A loader that takes 20 ms a batch."""

    def data(self) -> Data:
        data = super().data()
        return replace(data, train=Sleepy(data.train, 0.02))


class Scored(Work):
    """Epochs of 400 samples, each scored on 4000."""

    def data(self) -> Data:
        few = open_data(f"synthetic:400x{FEATURES}:10", None, self.seed)
        return replace(few, test=super().data().train)


class ScoredBriefly(Work):
    """Epochs of 2000 samples, each scored on 2000."""

    def data(self) -> Data:
        data = open_data(f"synthetic:2000x{FEATURES}:10", None, self.seed)
        return replace(data, test=data.train)
