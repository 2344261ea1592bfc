"""The task a role works on: named in the spec, or handed over by value from Python."""

from __future__ import annotations

import os
from typing import cast

import cloudpickle
from torch import nn

from paceline.exchange.tables import make_dense
from paceline.spec import RunSpec
from paceline.tasks.base import Task
from paceline.tasks.load import load_task


def task_for(spec: RunSpec, fds: dict[str, int]) -> Task:
    """`fds["task"]` is a segment this run's own launcher filled; it never crossed a network."""
    if "task" not in fds:
        return load_task(spec)
    body = os.pread(fds["task"], os.fstat(fds["task"]).st_size, 0)
    return cast(Task, cloudpickle.loads(body))


def model_for(task: Task, spec: RunSpec) -> nn.Module:
    """A new model, without sparse tables where everything is to be exchanged whole."""
    model = task.model()
    if spec.dense:
        make_dense(model)
    return model
