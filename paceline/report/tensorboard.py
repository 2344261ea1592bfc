"""A run's scalars as TensorBoard event files, while it goes on.

    DIR/RUN/ROLE/    loss, samples a second, shares of phases; CPU and memory of the role
    DIR/RUN/test/    how good the model was, by whoever scored it

All is read from the run's folder, a few seconds at a time, so what is drawn is what was recorded.
Workers write the model's graph and profiles beside it (`worker/profiling.py`).
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from paceline.measure.rates import durations
from paceline.store.folder import RunFolder
from paceline.store.steps import CHUNK, Steps, no_steps
from paceline.types import FINE, PHASES, Event, Observer, Progress, Resources, Score

if TYPE_CHECKING:
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

EVERY = 2.0  # seconds between looks at the folder
PIECE = 1.0  # seconds that a point of the curves stands for, at least


class Scalars:
    """Of one run; `turn` writes what is new, `close` the rest."""

    def __init__(self, folder: RunFolder, path: Path) -> None:
        self._folder = folder
        self._path = path / folder.name
        self._began = datetime.fromisoformat(folder.read_spec()["started"]).timestamp()
        self._writers: dict[str, EventFileWriter] = {}
        # Rows of each worker's steps that were read; of a run that is taken up, by the run before.
        self._rows = {role: len(folder.steps(role)) for role in folder.stepped_roles()}
        self._samples: dict[str, Resources] = {}
        self._lines = len(folder.resources())  # that were read of them

    def turn(self, *, last: bool = False) -> None:
        for role in self._folder.stepped_roles():
            more = True
            while more:
                rows = self._rows.setdefault(role, 0)
                steps = next(self._folder.step_chunks(role, skip=rows), no_steps())
                more = len(steps) == CHUNK
                self._rows[role] += self._steps(role, steps, last=last)
                more = more and self._rows[role] > rows  # else no piece of it is over
        found = self._folder.resources(self._lines)
        self._lines += len(found)
        for sample in found:
            self._resources(sample)

    def score(self, score: Score) -> None:
        values = {f"test/{name}": value for name, value in score.values.items()}
        self._write("test", score.step, score.time, values)

    def close(self) -> None:
        self.turn(last=True)
        for writer in self._writers.values():
            writer.close()

    def _steps(self, role: str, steps: Steps, *, last: bool) -> int:
        """A point for each piece that is over: how many rows that was."""
        pieces = np.floor(steps["time"] / PIECE)
        edges = [
            0,
            *(np.flatnonzero(np.diff(pieces)) + 1).tolist(),
            *([len(steps)] if last else []),
        ]
        for begin, end in pairwise(edges):
            part = steps[begin:end]
            spent = durations(part)
            wall = max(float(part["time"][-1] - part["time"][0]) + float(spent[0]), 1e-9)
            names = PHASES if np.isnan(part["forward"]).any() else FINE
            values = {f"phases/{name}": float(part[name].sum()) / wall for name in names}
            values["loss"] = float(np.nanmean(part["loss"])) if part["samples"].any() else np.nan
            values["samples per second"] = float(part["samples"].sum()) / wall
            self._write(role, int(part["step"][-1]), float(part["time"][-1]), values)
        return edges[-1]

    def _resources(self, sample: Resources) -> None:
        before, self._samples[sample.role] = self._samples.get(sample.role), sample
        values = {"memory, MB": sample.memory_bytes / 1e6}
        if before is not None and sample.time > before.time:
            used = sample.cpu_seconds - before.cpu_seconds
            if used >= 0:  # else it was started again
                values["CPU, % of a core"] = 100 * used / (sample.time - before.time)
        self._write(sample.role, round(sample.time), sample.time, values)

    def _write(self, name: str, step: int, seconds: float, values: Mapping[str, float]) -> None:
        from tensorboard.compat.proto.event_pb2 import Event as Written
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        if name not in self._writers:
            self._writers[name] = EventFileWriter(str(self._path / name))
        told = [Summary.Value(tag=tag, simple_value=value) for tag, value in values.items()]
        event = Written(wall_time=self._began + seconds, step=step, summary=Summary(value=told))
        self._writers[name].add_event(event)


class TensorBoard:
    """An observer that also has the scalars written; what it sees it hands on."""

    def __init__(self, observer: Observer, folder: RunFolder, path: Path) -> None:
        self._observer = observer
        self._scalars = Scalars(folder, path)
        self._next = time.monotonic() + EVERY

    def event(self, event: Event) -> None:
        self._observer.event(event)

    def progress(self, role: str, progress: Progress) -> None:
        self._observer.progress(role, progress)
        if time.monotonic() >= self._next:
            self._scalars.turn()
            self._next = time.monotonic() + EVERY

    def score(self, score: Score) -> None:
        self._observer.score(score)
        self._scalars.score(score)

    def close(self) -> None:
        try:
            self._scalars.close()
        finally:
            self._observer.close()
