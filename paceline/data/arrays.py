"""Samples in memory: compact arrays, of which only the batch at hand is made into floats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from paceline.data.base import Array, Batch, Rows
from paceline.errors import DataError
from paceline.kernels.load import Kernels

Column = Callable[[Rows], Tensor]  # of a batch


class Arrays:
    """Columns of equal length: inputs first, then labels or whatever else the loss needs.

    An integer first column with a `scale` becomes float32 times that scale; every other integer
    column becomes int64; all else passes through as it is. `shape` is the shape of one input.
    Arrays may be memory-mapped and read-only; nothing is copied until a batch is asked for.
    """

    def __init__(
        self,
        *columns: Array | Tensor,
        scale: float | None = None,
        shape: tuple[int, ...] | None = None,
    ) -> None:
        if not columns:
            raise DataError("Arrays needs at least one column.")
        arrays = [_native(column, place) for place, column in enumerate(columns)]
        lengths = [len(array) for array in arrays]
        if len(set(lengths)) > 1:
            raise DataError(f"columns must be equally long; these have {lengths} rows.")
        if shape is not None:
            arrays[0] = _shaped(arrays[0], shape)
        self._length = lengths[0]
        self._arrays, self._scale = arrays, scale
        self._columns = [_taken(array, _finish(array)) for array in arrays]
        if scale is not None and arrays[0].dtype.kind in "iu":
            self._columns[0] = _taken(arrays[0], _scaled(scale))

    def __len__(self) -> int:
        return self._length

    def batch(self, rows: Rows) -> Batch:
        return tuple([column(rows) for column in self._columns])

    def quicken(self, kernels: Kernels) -> None:
        """Have compiled loops make batches, to the bit the same, where there is one for them."""
        first = self._arrays[0]
        if self._scale is not None and first.dtype == np.uint8 and first.flags.c_contiguous:
            self._columns[0] = _gathered(kernels, first, self._scale, self._columns[0])


class FromTorch:
    """A map-style torch Dataset as Samples, collated as torch's DataLoader would."""

    def __init__(self, dataset: torch.utils.data.Dataset[Any]) -> None:
        addressed = hasattr(dataset, "__len__") and hasattr(dataset, "__getitem__")
        if not addressed or isinstance(dataset, torch.utils.data.IterableDataset):
            raise DataError(
                f"{type(dataset).__name__} is not a map-style data set: "
                "it needs __len__ and __getitem__."
            )
        self._dataset: Any = dataset

    def __len__(self) -> int:
        return len(self._dataset)

    def batch(self, rows: Rows) -> Batch:
        if not len(rows):  # torch cannot collate nothing
            return tuple(column[:0] for column in self.batch(np.zeros(1, np.int64)))
        collated = torch.utils.data.default_collate([self._dataset[row] for row in rows.tolist()])
        if isinstance(collated, Tensor):
            return (collated,)
        if isinstance(collated, list | tuple):
            return tuple(collated)
        raise DataError(
            f"{type(self._dataset).__name__} gives samples of type {type(collated).__name__}: "
            "a sample must be a tensor or a tuple of tensors and numbers."
        )


def _native(column: Array | Tensor, place: int) -> Array:
    """The column as an array of this machine's byte order, sharing memory where it can."""
    try:
        plain = column.detach().cpu().numpy() if isinstance(column, Tensor) else np.asarray(column)
        native = plain.astype(plain.dtype.newbyteorder("="), copy=False)
        torch.from_numpy(native[:0].copy())
    except (TypeError, IndexError):
        shape, dtype = tuple(getattr(column, "shape", ())), getattr(column, "dtype", None)
        raise DataError(
            f"column {place} (shape {shape}, dtype {dtype}) cannot be used: "
            "a column has one row of numbers a sample, of a type numpy and torch both know."
        ) from None
    return native


def _shaped(array: Array, shape: tuple[int, ...]) -> Array:
    try:
        return array.reshape(len(array), *shape)
    except ValueError:
        raise DataError(
            f"inputs of shape {array.shape[1:]} cannot be given the shape {shape}."
        ) from None


def _taken(array: Array, finish: Callable[[Array], Tensor]) -> Column:
    """numpy gathers rows faster than torch, into memory of its own that torch then adopts."""
    take = array.take
    return lambda rows: finish(take(rows, 0))


def _gathered(kernels: Kernels, array: Array, scale: float, otherwise: Column) -> Column:
    """Bytes, in one pass where torch and numpy take three."""
    at, length, shape = array.ctypes.data, len(array), array.shape[1:]
    width = array[0].size if length else 0

    def gathered(rows: Rows) -> Tensor:
        if rows.dtype == np.int64 and rows.flags.c_contiguous and width:
            made = torch.empty(len(rows), *shape)
            where = made.data_ptr(), at, rows.ctypes.data
            if kernels.gather(*where, scale, len(rows), width, length) == len(rows):
                return made
        return otherwise(rows)  # which tells what is wrong with them

    return gathered


def _finish(array: Array) -> Callable[[Array], Tensor]:
    integers = array.dtype.kind in "iu" and array.dtype != np.int64
    return _indices if integers else torch.from_numpy


def _indices(taken: Array) -> Tensor:
    return torch.from_numpy(taken.astype(np.int64))


def _scaled(scale: float) -> Callable[[Array], Tensor]:
    def scaled(taken: Array) -> Tensor:
        return torch.from_numpy(taken).float().mul_(scale)

    return scaled
