"""Who keeps the others waiting: the workers that arrive last, whatever the durations say.

In a synchronous round everybody's step takes equally long, because all end together. Only the
times at which the workers reached the exchange tell who was waited for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True, kw_only=True)
class Straggler:
    """`role`, or one of those that are as slow as it."""

    role: str
    share: float  # of the rounds in which one of them arrived last
    late_seconds: float  # after the last of the others, on the mean of those rounds
    rounds: int
    alike: tuple[str, ...] = ()

    @property
    def roles(self) -> tuple[str, ...]:
        return (self.role, *self.alike)


def find_straggler(workers: Mapping[str, npt.NDArray[np.void]]) -> Straggler | None:
    """The worker that is last in most rounds, from rows of STEP; None if it is nobody's fault.

    Being last by chance happens in one round of n. A worker is named once it is last more than
    half-way from there to always: 1/n + (1 − 1/n) / 2. Where several are equally slow each of them
    is last in a part of the rounds: the fewest that are it together more than half-way from k/n to
    always, and each more often than by chance, up to half of the workers.
    """
    roles = list(workers)
    if len(roles) < 2:
        return None
    rows = in_common(list(workers.values()))
    arrivals = np.stack(
        [steps["arrival"][mine] for steps, mine in zip(workers.values(), rows, strict=True)]
    )
    rounds = arrivals.shape[1]
    if not rounds:
        return None
    last = np.argmax(arrivals, axis=0)
    times_last = np.bincount(last, minlength=len(roles))
    slow = _slow(times_last / rounds)
    if not len(slow):
        return None
    theirs = arrivals[:, np.isin(last, slow)]
    late = float(np.mean(theirs.max(axis=0) - np.delete(theirs, slow, axis=0).max(axis=0)))
    if late <= 0:  # arrivals that were never stamped
        return None
    first, *alike = (roles[worker] for worker in slow)
    share = float(times_last[slow].sum() / rounds)
    return Straggler(
        role=first, share=share, late_seconds=late, rounds=rounds, alike=tuple(sorted(alike))
    )


def _slow(shares: npt.NDArray[np.float64]) -> npt.NDArray[np.intp]:
    """The fewest workers that are last so often that it is not by chance, most often first."""
    ranked, crew = np.argsort(-shares, kind="stable"), len(shares)
    for few in range(1, crew // 2 + 1):
        slow = ranked[:few]
        if shares[slow].min() <= 1 / crew:
            break
        if shares[slow].sum() > (1 + few / crew) / 2:
            return slow
    return ranked[:0]


def in_common(workers: Sequence[npt.NDArray[np.void]]) -> list[npt.NDArray[np.intp]]:
    """Of each worker its rows of the rounds that all took part in, in the order of rounds."""
    taken = [_latest(steps) for steps in workers]
    common = reduce(_both, (numbers for numbers, _ in taken))
    return [rows[np.searchsorted(numbers, common)] for numbers, rows in taken]


def _both(one: npt.NDArray[np.uint32], other: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    return np.intersect1d(one, other, assume_unique=True)


def _latest(
    steps: npt.NDArray[np.void],
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.intp]]:
    """Numbers of the steps and the row of each; of one taken again after a restart, the later."""
    numbers, back = np.unique(steps["step"][::-1], return_index=True)
    return numbers, len(steps) - 1 - back
