"""How many torch threads to give a worker, from measured rates.

A thread costs a core that another worker could have. So the answer is not the fastest number but
the fewest that more would not beat by a margin worth a core, beyond the noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from paceline.diagnose.doctor.facts import ThreadCount, Threads
from paceline.measure.spread import Spread, paired, spread

WORTH = 1.05  # times as fast, at least, for more threads


def candidates(cores: int, *also: int) -> list[int]:
    """Which numbers to measure: all up to eight, then ever fewer, always the last."""
    found = {*range(1, min(cores, 8) + 1), cores, *(n for n in also if 0 < n <= cores)}
    step = 8.0
    while (step := step * math.sqrt(2)) < cores:
        found.add(round(step / 4) * 4)
    return sorted(n for n in found if n <= cores)


def judge(
    task: str, batch: int, counts: Sequence[int], rounds: Sequence[Sequence[float]]
) -> Threads:
    """Of `rounds`, each with one rate for every number in `counts`, which begin with 1."""
    rates = dict(zip(counts, zip(*rounds, strict=True), strict=True))
    told = tuple(
        ThreadCount(threads=n, rate=spread(rates[n]), against_one=paired(rates[n], rates[1]))
        for n in counts
    )
    best = _fewest(rates)
    sentence = _sentence(task, told, best)
    return Threads(task=task, batch=batch, counts=told, best=best, sentence=sentence)


def _fewest(rates: dict[int, tuple[float, ...]]) -> int:
    def beaten(n: int) -> bool:
        return any(_worth(paired(rates[more], rates[n])) for more in rates if more > n)

    return next(n for n in sorted(rates) if not beaten(n))


def _worth(gain: Spread) -> bool:
    return gain.value > WORTH and (gain.low is None or gain.low > 1.0)


def _sentence(task: str, told: Sequence[ThreadCount], best: int) -> str:
    if len(told) == 1:
        return f"{task}: there is one core, so use --threads 1."
    most = told[-1]
    if best == 1:
        verb, noise = "are", ""
        if most.against_one.value > WORTH:
            verb, noise = "may be", ", which could be noise"
        return (
            f"{task}: use --threads 1; {most.threads} threads {verb} {_times(most.against_one)} as "
            f"fast as one{noise}, and a core does more as another worker."
        )
    gain = next(count for count in told if count.threads == best).against_one
    return (
        f"{task}: one worker alone gains up to --threads {best}, {_times(gain)} as fast as one "
        f"thread; {best} workers with --threads 1 do up to {best} times as much."
    )


def _times(gain: Spread) -> str:
    told = f"{gain.value:.2f} times"
    return told if gain.low is None else f"{told} ({gain.low:.2f}–{gain.high:.2f})"
