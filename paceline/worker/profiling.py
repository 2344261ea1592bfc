"""What a worker writes for TensorBoard: the model's graph, and profiles of chosen steps."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

from paceline.spec import RunSpec
from paceline.spec.check import profiled
from paceline.tasks.base import Task
from paceline.worker.task import model_for

NEVER = -1


class Profile:
    """Of one worker. torch.profiler looks at the steps that the spec names, if it names any.

    The file is a Chrome trace, for TensorBoard's profile plugin or ui.perfetto.dev.
    """

    def __init__(self, spec: RunSpec, role: str, folder: Path) -> None:
        self._spec = spec
        self._role = role
        self._profiler: torch.profiler.profile | None = None
        self._due = NEVER  # so many steps taken: it begins or ends
        self._where = Path(spec.tensorboard or "") / folder.name
        if spec.profile_steps and (steps := profiled(spec.profile_steps)):
            self._due, self._last = steps[0] - 1, steps[1]

    def between(self, taken: int) -> None:
        """So many steps are taken: begin before the first of those, end after the last."""
        if taken != self._due:
            return
        if self._profiler is not None:
            self.close()
            return
        self._due = self._last
        ready = torch.profiler.tensorboard_trace_handler(str(self._where / self._role), self._role)
        self._profiler = torch.profiler.profile(on_trace_ready=ready, record_shapes=True)
        self._profiler.start()

    def close(self) -> None:
        """Write what there is: a run may end before the last of them."""
        profiler, self._profiler, self._due = self._profiler, None, NEVER
        if profiler is not None:
            profiler.stop()

    def graph(self, task: Task, *, first: bool) -> None:
        """The model as torch traces it, by the first worker: a new one, at nobody's cost.

        A model that cannot be traced is said so in the role's log, and trains all the same.
        """
        if not self._spec.tensorboard or not first:
            return
        from torch.utils.tensorboard.writer import SummaryWriter

        with torch.random.fork_rng():
            try:
                model = model_for(task, self._spec).eval()
                batch: Any = task.data().train.batch(np.arange(1))
                with SummaryWriter(str(self._where / "graph")) as writer:
                    writer.add_graph(model, batch[0])
            except Exception as wrong:  # noqa: BLE001 - torch says no in many ways
                print(f"no graph for TensorBoard: {wrong}", file=sys.stderr)  # noqa: T201 - the log
