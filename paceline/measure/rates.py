"""Samples a second of a whole run, with an interval.

The rate is taken over the window in which all workers are past warm-up and none has finished:
before and after it, fewer workers run than the run is about. Each step's samples are spread evenly
over the time it took, so C_w(t), worker w's samples until t, is a line through the ends of its
steps, and the window is cut into m equal pieces of width h without losing a step at their edges:

    r_k = Σ_w (C_w(t_{k+1}) − C_w(t_k)) / h        rate = mean(r)
    interval = rate ± t_{m−1} · sd(r) / √m · √((1 + ρ) / (1 − ρ))

Steps a few apart vary together, pieces of many steps much less; ρ, their correlation with the
next where it is positive, widens the interval by what is left of that. Pauses between steps, such
as scoring, are part of the time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from paceline.measure.student import t95
from paceline.measure.warmup import warmup_steps
from paceline.types import PHASES

PIECES = 24
STEPS_A_PIECE = 4  # at least, of each worker
FEWEST_PIECES = 4  # of which an interval is still worth telling


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """`low` and `high` bound a 95 % interval; None where a run is too short to tell.

    `warmup_steps` were left out and `steps` counted, over all workers together.
    """

    samples_per_second: float | None
    low: float | None = None
    high: float | None = None
    warmup_steps: int = 0
    steps: int = 0


def durations(steps: npt.NDArray[np.void]) -> npt.NDArray[np.float64]:
    """Seconds each step took: its phases together."""
    total: npt.NDArray[np.float64] = np.zeros(len(steps))
    for phase in PHASES:
        total += steps[phase]
    return total


def throughput(workers: Sequence[npt.NDArray[np.void]]) -> Throughput:
    """The rate of a run from its workers' rows of STEP."""
    series = [steps for steps in workers if len(steps)]
    if not series:
        return Throughput(samples_per_second=None)
    warm = [warmup_steps(durations(steps)) for steps in series]
    begin, end = _warm(series, warm)
    inside = [_count_between(steps["time"], begin, end) for steps in series]
    if min(inside) < STEPS_A_PIECE:
        return _overall(series)
    pieces = max(1, min(PIECES, min(inside) // STEPS_A_PIECE))
    rates = _piece_rates(series, np.linspace(begin, end, pieces + 1))
    rate = float(rates.mean())
    half = _half_width(rates)
    return Throughput(
        samples_per_second=rate,
        low=None if half is None else max(0.0, rate - half),
        high=None if half is None else rate + half,
        warmup_steps=sum(warm),
        steps=sum(inside),
    )


def warm_window(workers: Sequence[npt.NDArray[np.void]]) -> tuple[float, float] | None:
    """From when to when the rate is taken; all the time of a run too short; None without steps."""
    series = [steps for steps in workers if len(steps)]
    if not series:
        return None
    begin, end = _warm(series, [warmup_steps(durations(steps)) for steps in series])
    if min(_count_between(steps["time"], begin, end) for steps in series) < STEPS_A_PIECE:
        begin = min(float(steps["time"][0] - durations(steps[:1])[0]) for steps in series)
        end = max(float(steps["time"][-1]) for steps in series)
    return begin, end


def _warm(series: Sequence[npt.NDArray[np.void]], warm: Sequence[int]) -> tuple[float, float]:
    """Where all workers are past warm-up and none has finished."""
    # A single step cannot be both warm-up and window.
    begin = max(steps["time"][max(drop, 1) - 1] for steps, drop in zip(series, warm, strict=True))
    return float(begin), float(min(steps["time"][-1] for steps in series))


def _overall(series: Sequence[npt.NDArray[np.void]]) -> Throughput:
    """All samples over all the time: for runs too short, or whose workers took turns."""
    begin = min(float(steps["time"][0] - durations(steps[:1])[0]) for steps in series)
    end = max(float(steps["time"][-1]) for steps in series)
    samples = sum(int(steps["samples"].sum()) for steps in series)
    return Throughput(
        samples_per_second=samples / (end - begin) if end > begin else None,
        steps=sum(len(steps) for steps in series),
    )


def _count_between(times: npt.NDArray[np.float64], begin: float, end: float) -> int:
    first, last = np.searchsorted(times, (begin, end), side="right")
    return max(0, int(last - first))


def _piece_rates(
    series: Sequence[npt.NDArray[np.void]], edges: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    until = np.zeros(len(edges))
    for steps in series:
        until += np.interp(edges, steps["time"], np.cumsum(steps["samples"], dtype=np.float64))
    return np.diff(until) / np.diff(edges)


def _half_width(rates: npt.NDArray[np.float64]) -> float | None:
    if len(rates) < FEWEST_PIECES:
        return None
    error = float(rates.std(ddof=1)) / math.sqrt(len(rates))
    together = max(0.0, _correlation(rates))
    return t95(len(rates) - 1) * error * math.sqrt((1 + together) / (1 - together))


def _correlation(rates: npt.NDArray[np.float64]) -> float:
    """Of each piece with the next; below 1 for any finite series."""
    centred = rates - rates.mean()
    power = float(centred @ centred)
    return float(centred[:-1] @ centred[1:]) / power if power else 0.0
