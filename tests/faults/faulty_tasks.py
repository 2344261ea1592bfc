"""Tasks that go wrong, each in a way of its own. Used by path, from another process."""

from __future__ import annotations

import hashlib
import os
import resource
import signal
import sys
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import paceline

sys.path.insert(0, str(Path(__file__).parents[2]))  # roles look from where the command was run

from tools.counting import Counting, Middle, Rows, Wide  # noqa: F401 - found here by name


class Plain(paceline.Task):
    """Goes well; `steps_taken` counts in each worker."""

    batch, lr = 16, 0.01
    steps_taken = 0

    def model(self) -> nn.Module:
        return nn.Linear(8, 3)

    def data(self) -> paceline.Data:
        x = torch.randn(4000, 8, generator=torch.Generator().manual_seed(0))
        y = (x[:, 0] > 0).long()
        return paceline.Data(train=paceline.Arrays(x, y), test=paceline.Arrays(x[:500], y[:500]))

    def loss(self, model: nn.Module, batch: Any) -> Tensor:
        self.steps_taken += 1
        if self.steps_taken == 20:
            self.at_step_20(paceline_role())
        return super().loss(model, batch)

    def at_step_20(self, role: str) -> None:
        pass


class Patient(Plain):
    """Leaves the cores to others most of the time, so that several runs fit beside each other."""

    def loss(self, model: nn.Module, batch: Any) -> Tensor:
        time.sleep(0.005)
        return super().loss(model, batch)


def paceline_role() -> str:
    """Which role this process is: its standard error goes to that role's log."""
    return Path("/proc/self/fd/2").readlink().stem


class OutOfMemory(Patient):
    """Once there is a checkpoint one of the workers asks for more memory than there is, once."""

    def loss(self, model: nn.Module, batch: Any) -> Tensor:
        log = Path("/proc/self/fd/2").readlink()
        mark, kept = log.with_suffix(".full"), log.parents[1].glob("checkpoints/*/manifest.json")
        if log.stem == "worker-1" and not mark.exists() and any(kept):
            mark.touch()
            now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (now + (64 << 20),) * 2)
            torch.empty(1 << 30)
        return super().loss(model, batch)


class RaisesInOne(Plain):
    def at_step_20(self, role: str) -> None:
        if role == "worker-1":
            raise ZeroDivisionError("the twentieth batch is cursed")


class ExitsInOne(Plain):
    def at_step_20(self, role: str) -> None:
        if role == "worker-1":
            os._exit(3)


class RaisesInModel(Plain):
    def model(self) -> nn.Module:
        raise RuntimeError("no such layer")


class RaisesInData(Plain):
    def data(self) -> paceline.Data:
        raise FileNotFoundError("no such samples")


class RaisesInMetrics(Plain):
    def metrics(self, model: nn.Module, batch: Any) -> dict[str, Tensor | float]:
        raise LookupError("no such metric")


class NoSamples(Plain):
    def data(self) -> paceline.Data:
        x = torch.randn(0, 8)
        return paceline.Data(train=paceline.Arrays(x), test=paceline.Arrays(x))


class Halves(Plain):
    def model(self) -> nn.Module:
        return nn.Linear(8, 3).half()


class Uneven(Plain):
    def model(self) -> nn.Module:
        return nn.Linear(8, 3, bias=paceline_role() == "worker-0")


class Talks(Patient):
    """Says who it is, in its log."""

    def data(self) -> paceline.Data:
        sys.stderr.write(f"this is {paceline_role()}\n")
        return super().data()


class Random(paceline.Task):
    """Dropout, running means and noise; takes its time."""

    batch, lr, seconds = 16, 0.01, 0.004

    def model(self) -> nn.Module:
        return nn.Sequential(
            *(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 3))
        )

    def data(self) -> paceline.Data:
        x = torch.randn(1000, 8, generator=torch.Generator().manual_seed(0))
        y = (x[:, 0] > 0).long()
        return paceline.Data(train=paceline.Arrays(x, y), test=paceline.Arrays(x[:100], y[:100]))

    def loss(self, model: nn.Module, batch: Any) -> Tensor:
        time.sleep(self.seconds)
        x, y = batch
        return nn.functional.cross_entropy(model(x + 0.01 * torch.rand(())), y)


class RandomLarge(Random):
    """More than a million parameters: several blocks, and shards that are served, not applied by
    all."""

    seconds = 0.0

    def model(self) -> nn.Module:
        return nn.Sequential(
            *(nn.Linear(8, 1100), nn.BatchNorm1d(1100), nn.ReLU(), nn.Dropout(0.3)),
            *(nn.Linear(1100, 1100), nn.Linear(1100, 3)),
        )


class Hurried(Random):
    """The same, at once."""

    seconds = 0.0


HurriedLarge = RandomLarge


class Digests(Patient):
    """At the end every worker's log has a digest of its parameters."""

    optimizer = "adam"

    def metrics(self, model: nn.Module, batch: Any) -> dict[str, Tensor | float]:
        flat = nn.utils.parameters_to_vector(model.parameters())
        sys.stderr.write(f"digest {hashlib.sha256(flat.numpy().tobytes()).hexdigest()}\n")
        return {}


class DiesGoingOn(Counting):
    """Where the run's folder has a file `dies`, worker-1 is killed in its first step, before any
    worker can have told of one."""

    began = False

    def loss(self, model: nn.Module, batch: Any) -> Tensor:
        mark = Path("/proc/self/fd/2").readlink().parents[1] / "dies"
        if not self.began and mark.exists():
            if paceline_role() == "worker-1":
                mark.unlink()
                os.kill(os.getpid(), signal.SIGKILL)
            while mark.exists():
                time.sleep(0.01)
            time.sleep(0.3)
        self.began = True
        return super().loss(model, batch)


class DiesScoring(Patient):
    """Worker-0 is killed when it scores for the first time."""

    def metrics(self, model: nn.Module, batch: Any) -> dict[str, Tensor | float]:
        mark = Path("/proc/self/fd/2").readlink().with_suffix(".died")
        if paceline_role() == "worker-0" and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().metrics(model, batch)


class SleepsInForward(Plain):
    """One worker's twentieth step takes its time, and does nothing."""

    def at_step_20(self, role: str) -> None:
        if role == "worker-1":
            time.sleep(1.2)


class SpinsInForward(Plain):
    """One worker's twentieth step takes its time, and computes."""

    def at_step_20(self, role: str) -> None:
        until = time.monotonic() + 2.4
        while role == "worker-1" and time.monotonic() < until:
            pass


class Slow:
    """Samples that are made in a thread, since that takes a while; one batch takes long."""

    def __init__(self, samples: Any) -> None:
        self._samples = samples
        self._made = 0

    def __len__(self) -> int:
        return len(self._samples)

    def batch(self, rows: Any) -> Any:
        self._made += 1
        time.sleep(1.2 if self._made == 30 and paceline_role() == "worker-1" else 0.002)
        return self._samples.batch(rows)


class HangsInData(Plain):
    def data(self) -> paceline.Data:
        data = super().data()
        return paceline.Data(train=Slow(data.train), test=data.test)


class BuildsSlowly(Patient):
    def data(self) -> paceline.Data:
        if paceline_role() == "worker-1":
            time.sleep(1.2)
        return super().data()
