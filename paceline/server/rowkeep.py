"""Sparse tables in checkpoints: the rows that anybody has touched, with all they have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from paceline.errors import TaskError
from paceline.kernels import sparse
from paceline.kernels.arrays import Ids
from paceline.server.rowview import RowView

Arrays: TypeAlias = dict[str, npt.NDArray[Any]]


def used_rows(view: RowView, stripe: int = 0, stripes: int = 1) -> Ids:
    """Those of a stripe that are not all zero."""
    found = [view.used(*span, stripe, stripes) for span in view.spans()]
    return np.concatenate(found) if found else np.empty(0, np.int64)


def kept_rows(views: Sequence[RowView], name: str, stripe: int = 0, stripes: int = 1) -> Arrays:
    """Of one stripe of each table, the rows that are not all zero."""
    kept: Arrays = {}
    for number, view in enumerate(views):
        ids = used_rows(view, stripe, stripes)
        values = np.empty((len(ids), _width(view)), np.float32)
        sparse.note(view.weights, view.state, ids, np.empty_like(ids), values)
        kept[f"{name}ids.{number}"], kept[f"{name}values.{number}"] = ids, values
    return kept


def put_rows(views: Sequence[RowView], name: str, kept: Mapping[str, npt.NDArray[Any]]) -> None:
    """Have those rows again; the others are zero."""
    for number, view in enumerate(views):
        ids, values = kept[f"{name}ids.{number}"], kept[f"{name}values.{number}"]
        wide = values.shape[1] == _width(view)
        if not wide or (len(ids) and not 0 <= ids.min() <= ids.max() < len(view.weights)):
            raise TaskError(
                f"the checkpoint has other rows of table {number} than the model: the task has "
                "changed since."
            )
        sparse.unnote(view.weights, view.state, ids, values)


def _width(view: RowView) -> int:
    return int(view.weights.shape[1] * (1 + view.state.shape[1]))
