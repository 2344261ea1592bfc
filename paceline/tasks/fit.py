"""Whether data fits a built-in task."""

from __future__ import annotations

import math

from paceline.data.base import Data
from paceline.errors import TaskError


def classes_of(task: str, data: Data) -> int:
    if data.classes < 2:
        raise TaskError(f"task '{task}' tells classes apart, and its data has {data.classes}.")
    return data.classes


def features_of(task: str, data: Data) -> int:
    if not data.shape:
        raise TaskError(f"task '{task}' needs data that says the shape of a sample.")
    return math.prod(data.shape)
