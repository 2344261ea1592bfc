"""The built-in tasks by name. No torch here: specs are checked against this."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from paceline.errors import unknown

DEFAULT_DATA = "mnist"  # what the built-in tasks train on unless told otherwise
DATA = {"sparse-logreg": "clicks"}  # and what others do
FEATURED = ("sparse-logreg",)  # those whose number of features is to be chosen
BY_VALUE = "<python>"  # stands for the module of a task that exists only in a Python session

BUILT_IN: dict[str, str] = {
    "softmax": "paceline.tasks.softmax:Softmax",
    "lenet": "paceline.tasks.lenet:LeNet",
    "mlp": "paceline.tasks.mlp:MLP",
    "sparse-logreg": "paceline.tasks.sparse_logreg:SparseLogreg",
}


def data_of(task: str) -> str:
    """The data set that a built-in task trains on unless told otherwise."""
    return DATA.get(task, DEFAULT_DATA)


def task_fault(name: str) -> str | None:
    """Why this name cannot be a task, as far as can be told without importing it."""
    if name in BUILT_IN or name.startswith(BY_VALUE):
        return None
    where, colon, cls = name.rpartition(":")
    if not colon:
        return unknown("task", name, BUILT_IN) + " Your own is file.py:Class or module:Class."
    if not where or not cls.isidentifier():
        return f"task '{name}': your own task is given as file.py:Class or module:Class."
    if where.endswith(".py"):
        found_file = Path(where).expanduser().is_file()
        return None if found_file else f"task '{name}': there is no file '{where}'."
    try:
        found = importlib.util.find_spec(where)
    except (ImportError, ValueError):
        found = None
    if found is None:
        return f"task '{name}': there is no module '{where}'; for a file write {where}.py:{cls}."
    return None
