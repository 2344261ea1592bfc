"""Who keeps the others waiting: the worker that arrives last, whatever the durations say.

In a synchronous round everybody's step takes equally long, because all end together. Only the
times at which the workers reached the exchange tell who was waited for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True, kw_only=True)
class Straggler:
    role: str
    share: float  # of the rounds in which it arrived last
    late_seconds: float  # after the worker before it, on the mean of those rounds
    rounds: int


def find_straggler(workers: Mapping[str, npt.NDArray[np.void]]) -> Straggler | None:
    """The worker that is last in most rounds, from rows of STEP; None if it is nobody's fault.

    Being last by chance happens in one round of n. A worker is named once it is last more than
    half-way from there to always: 1/n + (1 − 1/n) / 2.
    """
    roles = list(workers)
    if len(roles) < 2:
        return None
    arrivals = _arrivals(list(workers.values()))
    rounds = arrivals.shape[1]
    if not rounds:
        return None
    last = np.argmax(arrivals, axis=0)
    times_last = np.bincount(last, minlength=len(roles))
    worst = int(np.argmax(times_last))
    share = times_last[worst] / rounds
    if share <= (1 + 1 / len(roles)) / 2:
        return None
    ordered = np.sort(arrivals[:, last == worst], axis=0)
    late = float(np.mean(ordered[-1] - ordered[-2]))
    if late <= 0:  # arrivals that were never stamped
        return None
    return Straggler(role=roles[worst], share=float(share), late_seconds=late, rounds=rounds)


def _arrivals(workers: list[npt.NDArray[np.void]]) -> npt.NDArray[np.float64]:
    """One row a worker, one column a round that all of them took part in."""
    taken = [latest(steps) for steps in workers]
    common = reduce(np.intersect1d, (numbers for numbers, _ in taken))
    return np.stack(
        [
            steps["arrival"][rows[np.searchsorted(numbers, common)]]
            for steps, (numbers, rows) in zip(workers, taken, strict=True)
        ]
    )


def latest(
    steps: npt.NDArray[np.void],
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.intp]]:
    """Numbers of the steps and the row of each; of one taken again after a restart, the later."""
    numbers, back = np.unique(steps["step"][::-1], return_index=True)
    return numbers, len(steps) - 1 - back
