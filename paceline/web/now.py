"""How a run is doing just now, from the ends of its files alone: cheap, however long it runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from paceline.store.folder import RunFolder
from paceline.store.steps import Steps, last_steps

ROWS = 512  # of each worker, at most
WINDOW = 3.0  # seconds over which a rate is taken


@dataclass(frozen=True, slots=True, kw_only=True)
class Now:
    """What is not known is None; `progress` is a part of 1."""

    samples_per_second: float | None = None
    loss: float | None = None
    epoch: int | None = None
    progress: float | None = None


def now(folder: RunFolder) -> Now:
    """StoreError if its files cannot be read."""
    last = [last_steps(folder.steps_path(role), ROWS) for role in folder.stepped_roles()]
    last = [rows for rows in last if len(rows)]
    if not last:
        return Now()
    about = folder.read_spec()
    end = max(float(rows["time"][-1]) for rows in last)
    recent = [rows[rows["time"] > end - WINDOW] for rows in last]
    losses = [float(rows["loss"].mean()) for rows in recent if len(rows)]
    return Now(
        samples_per_second=sum(map(_rate, recent)) or None,
        loss=float(np.mean(losses)) if losses and np.isfinite(losses).all() else None,
        epoch=max(int(rows["epoch"][-1]) for rows in last) + 1,
        progress=_progress(about, [int(rows["step"][-1]) + 1 for rows in last]),
    )


def _rate(rows: Steps) -> float:
    """What was done from the end of the first step to the end of the last."""
    if len(rows) < 2 or rows["time"][-1] <= rows["time"][0]:
        return 0.0
    return float(rows["samples"][1:].sum() / (rows["time"][-1] - rows["time"][0]))


def _progress(about: dict[str, Any], steps: list[int]) -> float | None:
    """By steps where so many were asked for, else by the samples of all epochs."""
    match about:
        case {"resolved": {"steps": int(most)}} if most > 0:
            return min(1.0, min(steps) / most)
        case {
            "resolved": {"batch": int(batch), "epochs": int(epochs)} as spec,
            "facts": {"samples": int(samples)},
        } if samples * epochs > 0:
            each = batch * (spec.get("accumulate") or 1)
            return min(1.0, sum(steps) * each / (samples * epochs))
    return None
