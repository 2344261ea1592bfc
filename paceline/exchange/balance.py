"""Shares of a round's batch by measured speed, so that all workers arrive at the same time.

Worker i took tᵢ seconds for its nᵢ of N samples, cᵢ = tᵢ / nᵢ each. Were cᵢ constant, all would
arrive together with shares in proportion to speed:

    n'ᵢ = N · (1 / cᵢ) / Σⱼ (1 / cⱼ)

A step costs a fixed part, too, so cᵢ falls as nᵢ grows; but n' = n only where all nᵢcᵢ = tᵢ are
equal, and each change comes closer to that.

Seconds are noisy. Over the last k rounds, with cᵢ their median, other shares promise

    gain = max nᵢcᵢ / max n'ᵢcᵢ − 1        and noise alone may promise        doubt = z · σ / √k

where σ is how much a worker's cᵢ differs from one round to the next, and z grows slowly with the
number of workers, since the slowest of many looks slower than it is. Shares that were found from
k rounds change by what more rounds say, or by what fewer say beyond doubt. Spans of 3, 6, 12, …
rounds since the last change are each looked at as they end. So a large change of speed is followed
after a few rounds and a small one after many, and shares that are right come to rest. The first
two rounds of a run are each followed at once.

Only +, −, ·, / and √ are used, which give the same bits on every machine: whoever has the same
numbers has the same shares.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Mapping
from statistics import median
from typing import NamedTuple

from paceline.server.shards import cut

SETTLING = 2  # rounds: the first is unlike the others, the second alone is near enough
SPAN = 3  # rounds: the fewest whose median is not one odd round
LONGEST = 96  # rounds
LEAST = 0.01  # of a gain that is worth a change
USUAL = 0.1  # σ before it is known
KNOWN = 8  # differences from which on it is
RECENT = 32  # differences
SHORTEST = 1e-9  # seconds


class Pace(NamedTuple):
    """What a worker did in a round: samples it had, and seconds it computed."""

    samples: int
    seconds: float


class Balance:
    """Everybody's share of the next round: (begin, end) of its batch of `whole` samples.

    There is at least one sample for each, so that everybody's speed stays known.
    Whoever goes on for another that is gone sets `shares` to those that were told.
    """

    def __init__(self, whole: int, workers: Collection[int]) -> None:
        self._whole = whole
        self._costs: dict[int, deque[float]] = {}  # seconds a sample, since shares were changed
        self.known: dict[int, float] = {}  # seconds a sample, when it was last seen
        self._differences: deque[float] = deque(maxlen=RECENT)
        self._rounds = 0  # since shares were changed
        self._settling = SETTLING
        self._found = 0  # how many rounds the shares were found from
        even = cut(whole, max(1, len(workers)))
        self.shares = dict(zip(sorted(workers), even, strict=False))

    def after(
        self, paces: Mapping[int, Pace], workers: Collection[int], new: Collection[int] = ()
    ) -> None:
        """A round has ended with these paces; `workers` take the next, the `new` among them too."""
        whole = sum(pace.samples for pace in paces.values()) == self._whole
        if whole:  # of a short batch the fixed part would be too large
            self._note(paces)
        if set(workers) != self.shares.keys() or new:
            self._deal_anew(workers)
        elif not whole or not workers:
            return
        elif self._settling:
            self._settling -= 1
            self._improve(1, LEAST)
        else:
            self._look()

    def join(self, known: Mapping[int, float], workers: Collection[int]) -> None:
        """Be one of the `new`: deal as the others do, from what is `known` to them."""
        self.known = dict(known)
        self._deal_anew(workers)

    def _deal_anew(self, workers: Collection[int]) -> None:
        """Others take part now. Whoever has the same `known` is from then on the same in all."""
        self._settling = SETTLING
        self._differences.clear()
        self._deal(self._guessed(workers), 0)

    def _look(self) -> None:
        """At every span of rounds that ends with this one."""
        span = SPAN
        while span <= LONGEST and self._rounds % span == 0:
            least = LEAST if span > self._found else max(LEAST, self._doubt(span))
            if self._improve(span, least):
                return
            self._found = max(self._found, span)
            span *= 2

    def _note(self, paces: Mapping[int, Pace]) -> None:
        self._rounds += 1
        for worker, pace in sorted(paces.items()):  # whatever order they were told in
            if not pace.samples:
                continue
            cost = max(pace.seconds, SHORTEST) / pace.samples
            if (last := self.known.get(worker)) is not None:
                self._differences.append(abs(cost - last) / min(cost, last))
            self.known[worker] = cost
            self._costs.setdefault(worker, deque(maxlen=LONGEST)).append(cost)

    def _doubt(self, span: int) -> float:
        """The gain that noise alone may show over so many rounds."""
        known = len(self._differences) >= KNOWN
        # Of two normal numbers, half differ by more than 0.954 σ.
        noise = median(self._differences) / 0.954 if known else USUAL
        many = 2 + math.sqrt(len(self.shares).bit_length())
        return many * noise / math.sqrt(span)

    def _improve(self, span: int, least: float) -> bool:
        """Change the shares if the last rounds promise more than the least gain."""
        if any(len(self._costs.get(worker, ())) < span for worker in self.shares):
            return False
        costs = {worker: _median(self._costs[worker], span) for worker in self.shares}
        counts = shared_out(self._whole, [1 / costs[worker] for worker in self.shares])
        now = max((end - begin) * costs[w] for w, (begin, end) in self.shares.items())
        then = max(n * cost for n, cost in zip(counts, costs.values(), strict=True))
        if now <= (1 + least) * then:
            return False
        self._deal(costs, span)
        return True

    def _guessed(self, workers: Collection[int]) -> dict[int, float]:
        """What a sample costs each; one that is new is taken for an ordinary one."""
        known = {w: self.known[w] for w in workers if w in self.known}
        ordinary = median(known.values()) if known else 1.0
        return {worker: known.get(worker, ordinary) for worker in workers}

    def _deal(self, costs: Mapping[int, float], found: int) -> None:
        workers = sorted(costs)
        counts = shared_out(self._whole, [1 / costs[worker] for worker in workers])
        self.shares, begin = {}, 0
        for worker, count in zip(workers, counts, strict=True):
            self.shares[worker] = begin, begin + count
            begin += count
        self._costs.clear()
        self._rounds, self._found = 0, found


def shared_out(whole: int, speeds: list[float]) -> list[int]:
    """`whole` samples in proportion to speed, at least one each.

    What whole numbers leave over goes where it is done first.
    """
    if not speeds:
        return []
    slow: set[int] = set()  # whose part would be less than one
    while True:
        rest = whole - len(slow)
        total = math.fsum(s for i, s in enumerate(speeds) if i not in slow)
        more = {i for i, s in enumerate(speeds) if i not in slow and rest * (s / total) < 1}
        if not more:
            break
        slow |= more
    counts = [1 if i in slow else int(rest * (s / total)) for i, s in enumerate(speeds)]
    for _ in range(whole - sum(counts)):
        first = min(range(len(speeds)), key=lambda i: (counts[i] + 1) / speeds[i])
        counts[first] += 1
    return counts


def _median(costs: deque[float], span: int) -> float:
    return median([costs[i] for i in range(-span, 0)])
