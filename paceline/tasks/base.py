"""Task: what is trained. Subclass it, say what the model is, and override what else differs."""

from __future__ import annotations

import time

import torch.nn.functional as F
from torch import Tensor, nn

from paceline.data.base import Batch, Data
from paceline.data.open import open_data
from paceline.tasks.catalog import DEFAULT_DATA


class Task:
    """A model, the data it learns from, its loss and its metrics.

    The attributes are defaults that a spec may override; `batch` is per worker. `model()` is called
    once in every process with torch seeded alike, so all workers start from the same parameters.
    """

    data_name: str = DEFAULT_DATA
    data_dir: str | None = None
    seed: int = 0
    batch: int = 64
    epochs: int = 1
    lr: float = 0.1
    optimizer: str = "sgd"

    forwarded = 0.0  # `time.monotonic()` when forward was last over; see `gradients`

    _data: Data | None = None

    def model(self) -> nn.Module:
        """A new model."""
        raise NotImplementedError(f"{type(self).__name__} must define model()")

    def data(self) -> Data:
        """What to train and to score on: here the data set named `data_name`, opened once."""
        if self._data is None:
            self._data = open_data(self.data_name, self.data_dir, self.seed)
        return self._data

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """The mean loss over a batch: here the cross-entropy of `model(x)` and labels `y`."""
        x, y = batch
        return F.cross_entropy(model(x), y)

    def gradients(self, model: nn.Module, batch: Batch, weight: float) -> float:
        """Add `weight` times the gradients of the batch's mean loss; return that loss.

        Autograd finds them. A task that knows them in closed form may override this; if it can tell
        where forward ends it says so, otherwise all of it counts as backward.
        """
        loss = self.loss(model, batch)
        self.forwarded = time.monotonic()
        (loss if weight == 1.0 else loss * weight).backward()  # type: ignore[no-untyped-call]
        return loss.item()

    def metrics(self, model: nn.Module, batch: Batch) -> dict[str, Tensor | float]:
        """Means over a batch of test samples. Anything but classification overrides this."""
        x, y = batch
        scores = model(x)
        # A loss of one's own is asked for; the default one is had from the scores at hand.
        default = type(self).loss is Task.loss
        loss = F.cross_entropy(scores, y) if default else self.loss(model, batch)
        return {"loss": loss, "accuracy": (scores.argmax(1) == y).float().mean()}
