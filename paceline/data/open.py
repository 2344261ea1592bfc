"""Data by name."""

from __future__ import annotations

import importlib
from typing import Protocol, cast

from paceline.data.base import Data
from paceline.data.catalog import BUILT_IN, data_fault
from paceline.errors import DataError


class DataSet(Protocol):
    """The two verbs of a data set's module. `arguments` is what follows the colon of its name."""

    def load(self, arguments: str, data_dir: str | None, seed: int) -> Data: ...

    def check(self, arguments: str, data_dir: str | None, seed: int) -> int:
        """Do all of `load` that can fail, without torch; return the number of training samples."""
        ...


def open_data(name: str, data_dir: str | None = None, seed: int = 0) -> Data:
    """The data set of that name: `mnist`, or with arguments `synthetic:5000x20:3`."""
    data_set, arguments = _find(name)
    return data_set.load(arguments, data_dir, seed)


def preflight(name: str, data_dir: str | None = None, seed: int = 0) -> int:
    """Find, fetch, decode and check a data set, so that no worker can fail on it later.

    Returns the number of training samples. Quick, and imports no torch.
    """
    data_set, arguments = _find(name)
    return data_set.check(arguments, data_dir, seed)


def _find(name: str) -> tuple[DataSet, str]:
    if fault := data_fault(name):
        raise DataError(fault)
    base, _, arguments = name.partition(":")
    return cast(DataSet, importlib.import_module(BUILT_IN[base])), arguments
