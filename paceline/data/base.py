"""What training needs of data: samples that can be counted and gathered into batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
Rows: TypeAlias = npt.NDArray[np.integer[Any]]
Batch: TypeAlias = tuple[Any, ...]


class Samples(Protocol):
    """Samples numbered from 0. They may be used from any thread, but only from one at a time."""

    def __len__(self) -> int: ...

    def batch(self, rows: Rows) -> Batch:
        """The samples at `rows`, in that order: tensors whose first dimension is len(rows)."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """What to train on and what to score on.

    `shape` is one sample's input without the batch dimension, `classes` how many labels there are;
    tasks that build their model from the data read them, others may leave them out.
    """

    train: Samples
    test: Samples
    shape: tuple[int, ...] = ()
    classes: int = 0
