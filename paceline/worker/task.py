"""The task a role works on: named in the spec, or handed over by value from Python."""

from __future__ import annotations

import os
from typing import cast

import cloudpickle

from paceline.spec import RunSpec
from paceline.tasks.base import Task
from paceline.tasks.load import load_task


def task_for(spec: RunSpec, fds: dict[str, int]) -> Task:
    """`fds["task"]` is a segment this run's own launcher filled; it never crossed a network."""
    if "task" not in fds:
        return load_task(spec)
    body = os.pread(fds["task"], os.fstat(fds["task"]).st_size, 0)
    return cast(Task, cloudpickle.loads(body))
