"""How fast counters grew in a window of time, from the samples of it. Arithmetic alone.

Counters only grow, so what happened between two samples is their difference:

    mean = Σ (b − a) / seconds from the first sample to the last
    peak = the largest such rate over a quarter of a second or more

Those of a role begin anew when it is started again; then the difference is b.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple, Protocol, TypeVar

Window = tuple[float, float]  # from when to when, in seconds of the run

MOMENT = 0.25  # seconds: over less, a rate is mostly the grain of its clock
ENOUGH = 0.5  # of a window that samples inside should cover; else those around it are taken too


class Rate(NamedTuple):
    """A second, over the window and where it was highest."""

    mean: float
    peak: float


class Timed(Protocol):
    @property
    def time(self) -> float: ...


Sample = TypeVar("Sample", bound=Timed)
Count = TypeVar("Count", int, float)
Value = Callable[[Sample], float | None]


def within(samples: Sequence[Sample], window: Window | None) -> Sequence[Sample]:
    """Those in the window; where they cover little of it, those right before and after it too; all
    where that is still too few to tell anything."""
    if window is None:
        return samples
    begin, end = window
    inside = [n for n, sample in enumerate(samples) if begin <= sample.time <= end]
    if inside:
        first, last = inside[0], inside[-1]
    else:
        first = sum(sample.time < begin for sample in samples)
        last = first - 1
    covered = samples[last].time - samples[first].time if first < last else 0.0
    if covered <= 0 or covered < ENOUGH * (end - begin):
        first, last = max(0, first - 1), min(len(samples) - 1, last + 1)
    some = samples[first : last + 1]
    return some if len(some) > 1 else samples


def rate(samples: Sequence[Sample], value: Value[Sample], *, anew: bool = False) -> Rate | None:
    """Of a counter; None where it is not known. `anew` says that it may begin at nothing again."""
    known = [(s.time, v) for s in samples if (v := value(s)) is not None]
    if len(known) < 2 or known[-1][0] <= known[0][0]:
        return None
    total = peak = since = lately = 0.0
    for (a, before), (b, after) in pairwise(known):
        more = _more(before, after, anew)
        total, lately, since = total + more, lately + more, since + b - a
        if since >= MOMENT:
            peak, since, lately = max(peak, lately / since), 0.0, 0.0
    mean = total / (known[-1][0] - known[0][0])
    return Rate(mean, max(peak, mean))


def grown(samples: Sequence[Sample], value: Callable[[Sample], Count | None]) -> Count | None:
    """What a counter of a role came to, over all its lives."""
    known = [v for sample in samples if (v := value(sample)) is not None]
    if not known:
        return None
    return known[0] + sum(b - a if b >= a else b for a, b in pairwise(known))


def _more(before: float, after: float, anew: bool) -> float:
    """One that fell and did not begin anew was put right a little: Linux does so with some."""
    return after - before if after >= before else after if anew else 0.0


def level(samples: Sequence[Sample], value: Value[Sample]) -> Rate | None:
    """Of something that goes up and down: its mean and its highest."""
    known = [v for sample in samples if (v := value(sample)) is not None]
    return Rate(sum(known) / len(known), max(known)) if known else None


def by(
    samples: Iterable[Sample], name: Callable[[Sample], str], window: Window | None
) -> dict[str, Sequence[Sample]]:
    """Those of the window, apart by name, wherever there are two of different moments."""
    found: dict[str, list[Sample]] = {}
    for sample in samples:
        found.setdefault(name(sample), []).append(sample)
    cut = {each: within(own, window) for each, own in found.items()}
    return {each: some for each, some in cut.items() if some[-1].time > some[0].time}
