"""The parameters of one shard and how pushed gradients change them. Arithmetic only, no I/O.

A table keeps its parameters in one or more places (rows of `slots`). The one it wrote last holds
the current version. A gate says into which place an update goes: one place for all workers where
none of them reads while it is written, a place of its own for each worker where they do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import TypeVar

import torch
from torch import Tensor

from paceline.kernels.load import Kernels
from paceline.server.descent import Descent, Way, descent
from paceline.server.rules import CHUNK, Part, Rule

Kind = TypeVar("Kind")


class Table:
    """One writer. `version` counts updates; a half-applied one is never the current version.

    `grads` has a row a worker: where its gradient lies when it is to be applied. Views of every
    chunk are made once, when first needed: on small models making them would cost more than the
    arithmetic, and there may be room for workers that never come.
    """

    def __init__(
        self,
        slots: Tensor,
        grads: Tensor | Sequence[Tensor],
        rule: Rule,
        chunks: list[slice] | None = None,
        states: Tensor | None = None,
        kernels: Kernels | None = None,
    ) -> None:
        """`states`, [places, states, size], is there if the rule's state has places too."""
        self.places, self.size = slots.shape
        self._states = states
        self._slots = slots
        self._rule = rule
        self._chunks = rule.chunks() if chunks is None else chunks
        self._sizes = [at.stop - at.start for at in self._chunks]
        self._slot_views = [self.chunked(slot) for slot in slots]
        self._grad_views = _Rows(lambda worker: self.chunked(grads[worker]))
        # The same for compiled loops, by address.
        self._slots_at = [_addresses(views) for views in self._slot_views]
        self._grads_at = _Rows(lambda worker: _addresses(self._grad_views[worker]))
        if rule.layerwise:  # it goes over the mean twice, so all of it is kept
            whole = torch.empty(self.size)
            self._mean_views = [whole[at] for at in self._chunks]
        else:
            scratch = torch.empty(min(CHUNK, max(1, self.size)))
            self._mean_views = [scratch[: at.stop - at.start] for at in self._chunks]
        # One chunk, in one place: a small model's, where the way there is longer than the work.
        self._simple = len(self._chunks) == 1 and not rule.layerwise
        self._descent = descent(kernels, rule, min(CHUNK, self.size))
        self._last: Sequence[tuple[int, float]] | None = None  # pushes that were applied
        self._last_ways: list[Way] = []
        self._measured: list[Part] = []
        self._measured_for = 0  # which version
        self.stand(0)

    def stand(self, version: int) -> None:
        """This version is the current one; where there are several places, it lies in its own."""
        self.version = version
        self._be(version % self.places)

    def _be(self, place: int) -> None:
        self.current = place
        if self._states is not None:
            self._rule.state = self._states[place]

    def lend(self, worker: int, grads: list[Tensor]) -> None:
        """A worker's gradient lies here for once, chunk by chunk, and not in its row."""
        self._grad_views[worker] = grads
        self._grads_at[worker] = _addresses(grads)
        self._last = None

    def chunked(self, values: Tensor) -> list[Tensor]:
        """As many numbers as there are parameters, chunk by chunk."""
        return [values[at] for at in self._chunks]

    def slot(self, index: int) -> Tensor:
        return self._slots[index]

    def copy(self, into: int) -> None:
        """Have the current version in another place."""
        if into != self.current:
            self._slots[into].copy_(self._slots[self.current])
            if self._states is not None:
                self._states[into].copy_(self._states[self.current])

    def move(self, into: int) -> None:
        """Go on from there."""
        self.copy(into)
        self._be(into)

    def pool(self, pushes: Sequence[tuple[int, float]]) -> list[tuple[int, float]]:
        """The same update from one row: the mean is put where the first of these gradients lay."""
        weighed = [push for push in pushes if push[1] > 0]
        grads = self._weighed(weighed)
        for index in range(len(self._chunks) if len(grads) > 1 else 0):
            self._mean(grads, index, grads[0][0][index])
        return weighed[:1]

    @property
    def held(self) -> tuple[Tensor, Tensor]:
        """Parameters and the rule's state of the current version."""
        state = self._rule.state if self._states is None else self._states[self.current]
        return self._slots[self.current], state

    def adopt(self, version: int, params: Tensor, state: Tensor) -> None:
        """Hold what another table held at this version."""
        self.stand(version)
        for own, other in zip(self.held, (params, state), strict=True):
            own.copy_(other)

    def apply(
        self,
        pushes: Sequence[tuple[int, float]],
        lr: float,
        into: int,
        first: int = 0,
        before: Callable[[int], None] | None = None,
    ) -> None:
        """One update by the mean of these workers' gradients, weighted by samples.

        `pushes` are (worker, weight), and nobody changes that list afterwards; a weight of 0 is no
        gradient at all. Chunks before `first` have the update already; `before` is called with each
        other before it is changed.
        """
        self.version += 1
        if self._descent is not None and (ways := self._ways(self._descent, pushes)):
            self._descend(self._descent, ways, lr, into, first, before)
            return
        grads = self._weighed(pushes)
        if not grads:
            self.move(into)
            return
        if self._simple and into == self.current and not first and before is None:
            mean = grads[0][0][0] if len(grads) == 1 else self._mean(grads, 0, self._mean_views[0])
            values = self._slot_views[into][0]
            self._rule.step(values, values, mean, self._chunks[0], lr, self.version)
            return
        measured = self._measured if self._measured_for == self.version else None
        parts = measured[first:] if measured else self._parts(grads, into, first)
        if self._states is not None and into != self.current:
            self._states[into].copy_(self._states[self.current])
            self._rule.state = self._states[into]
        self._rule.update(parts, lr, self.version, _numbered(before, first))
        self._measured = []
        self.current = into

    def _ways(self, by: Descent, pushes: Sequence[tuple[int, float]]) -> list[Way]:
        """To the mean of these, chunk by chunk. The very same pushes are often applied again."""
        if pushes is not self._last:
            lying = [(self._grads_at[worker], weight) for worker, weight in pushes if weight > 0]
            self._last, self._last_ways = (
                pushes,
                [
                    by.way([(chunks[index], weight) for chunks, weight in lying])
                    for index in range(len(self._chunks) if lying else 0)
                ],
            )
        return self._last_ways

    def _descend(
        self,
        by: Descent,
        ways: list[Way],
        lr: float,
        into: int,
        first: int,
        before: Callable[[int], None] | None,
    ) -> None:
        old, new = self._slots_at[self.current], self._slots_at[into]
        for index in range(first, len(new)):
            if before is not None:
                before(index)
            by.mean(new[index], old[index], ways[index], lr, self._sizes[index])
        self._be(into)

    def measure(
        self,
        pushes: Sequence[tuple[int, float]],
        into: int,
        first: int = 0,
        before: Callable[[int], None] | None = None,
    ) -> None:
        """Only where shards cut the layers of a layer-wise rule: what `apply` will need of all.

        Each of them is measured before any applies, with the same pushes. Chunks before `first`
        have been, and `before` is called with each other.
        """
        if grads := self._weighed(pushes):
            self._measured = list(self._parts(grads, into))
            self._measured_for = self.version + 1
            self._rule.measure(self._measured, self.version + 1, first, _numbered(before, first))

    def changing(self, chunk: int) -> list[Tensor]:
        """What an update changes of a chunk, where there is one place for all."""
        return [self._slot_views[0][chunk], *self._rule.state[:, self._chunks[chunk]]]

    @property
    def chunks(self) -> int:
        """How many there are."""
        return len(self._chunks)

    def _weighed(self, pushes: Sequence[tuple[int, float]]) -> list[tuple[list[Tensor], float]]:
        return [(self._grad_views[worker], weight) for worker, weight in pushes if weight > 0]

    def _parts(
        self, grads: list[tuple[list[Tensor], float]], into: int, first: int = 0
    ) -> Iterator[Part]:
        """Chunk by chunk; a rule that takes them one at a time finds each mean in the cache."""
        old, new = self._slot_views[self.current], self._slot_views[into]
        for index in range(first, len(self._chunks)):
            mean = grads[0][0][index]
            if len(grads) > 1:
                mean = self._mean(grads, index, self._mean_views[index])
            yield new[index], old[index], mean, self._chunks[index]

    def _mean(self, grads: list[tuple[list[Tensor], float]], index: int, out: Tensor) -> Tensor:
        """mₖ = mₖ₋₁ + (wₖ / Σᵢ₌₁..ₖ wᵢ) (gₖ − mₖ₋₁), one pass a gradient."""
        mean, total = grads[0][0][index], grads[0][1]
        for views, weight in grads[1:]:
            total += weight
            mean = torch.lerp(mean, views[index], weight / total, out=out)
        return mean


class _Rows(dict[int, list[Kind]]):
    """Something of a worker's gradient, chunk by chunk; made when it is first needed."""

    def __init__(self, make: Callable[[int], list[Kind]]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, worker: int) -> list[Kind]:
        self[worker] = made = self._make(worker)
        return made


def _addresses(chunks: Sequence[Tensor]) -> list[int]:
    return [chunk.data_ptr() for chunk in chunks]


def _numbered(before: Callable[[int], None] | None, first: int) -> Callable[[Part], None] | None:
    """`before` told of a part, by the number of its chunk: parts come in order."""
    if before is None:
        return None
    numbers = count(first)
    return lambda _: before(next(numbers))
