"""Update rules that give each layer a rate of its own: LARS and LAMB, as in their papers.

    lars   You, Gitman, Ginsburg 2017, algorithm 1: arxiv.org/abs/1708.03888
    lamb   You et al. 2019, algorithm 2: arxiv.org/abs/1904.00962

A layer is one parameter of the model. The papers make no exception for biases and norms, and
neither is made here, though recipes often spare those the scaling and the decay.

With a layer's parameters w, gradient g, rate η, decay λ, step t counted from 1:

    lars   q = 0.001 ‖w‖ / (‖g‖ + λ‖w‖);  b ← μb + ηq (g + λw);  w ← w − b
    lamb   m ← β₁m + (1−β₁) g;  v ← β₂v + (1−β₂) g²
           u = m/(1−β₁ᵗ) / (√v/√(1−β₂ᵗ) + ε) + λw
           q = ‖w‖ / ‖u‖;  w ← w − ηq u

q, the trust ratio, is 1 where either norm is 0: a layer that begins at zero must be able to leave.

The norms are those of the whole layer, so an update goes over its parts twice: `measure` finds the
norms, and then every chunk makes its step at its layer's rate, ηq.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate, pairwise
from typing import NamedTuple

import torch
from torch import Tensor

from paceline.server.elementwise import Adam, Hyper, Part, Rule, chunks

TRUST = 0.001  # the paper's; not an option, since the learning rate scales it anyway


class Layers(NamedTuple):
    """Where a rule's range lies among the layers of the model.

    `sizes` are those of all layers, and the range begins at `start` of the flat parameters. Where
    shards cut layers, all of them add up their norms in `squares`, [shards, 2, layers] in float64;
    this one writes row `shard`, and every shard must be measured before any is updated.
    """

    sizes: tuple[int, ...]
    start: int = 0
    squares: Tensor | None = None
    shard: int = 0


class Layerwise(Rule):
    """The two passes. A rule says whose norm counts beside the parameters', and what q is."""

    layerwise = True

    def __init__(self, size: int, hyper: Hyper, state: Tensor | None, layers: Layers) -> None:
        super().__init__(size, hyper, state)
        # Counted from the start of this range: layers may begin before it and end after it.
        self._borders = list(accumulate(layers.sizes, initial=-layers.start))
        self._alone = layers.squares is None
        if layers.squares is None:
            self._squares = torch.zeros(1, 2, len(layers.sizes), dtype=torch.float64)
        else:
            self._squares = layers.squares
        self._own = self._squares[layers.shard]

    def chunks(self) -> list[slice]:
        """Pieces that fit the cache and cross no layer's border."""
        spans = pairwise(self._borders)
        return [at for a, b in spans for at in chunks(max(a, 0), min(b, self.size))]

    def _rated(self, parts: Iterable[Part], lr: float, t: int) -> Iterator[tuple[Part, float]]:
        """Each part with its layer's rate. Shards that cut layers were all measured before."""
        parts = list(parts)
        if self._alone:
            self.measure(parts, t)
        old_norm, other_norm = self._squares.sum(0).sqrt_()
        known = (old_norm > 0) & (other_norm > 0)
        rates = torch.where(known, self._trust(old_norm, other_norm), 1.0).mul_(lr).tolist()
        return ((part, rates[self._layer(part[3])]) for part in parts)

    def measure(self, parts: Iterable[Part], t: int) -> None:
        """The first pass: squared norms of every layer, as far as it lies in this range."""
        norm = torch.linalg.vector_norm  # of a chunk it is exact enough; the sums are in float64
        found: list[Tensor] = []
        layers: list[int] = []
        for _, old, grad, at in parts:
            found += norm(old), norm(self._other(old, grad, at, t))
            layers.append(self._layer(at))
        self._own.zero_()
        if found:
            squares = torch.stack(found).double().square_().view(-1, 2).t()
            self._own.index_add_(1, torch.tensor(layers), squares)

    def _layer(self, at: slice) -> int:
        return bisect_right(self._borders, at.start) - 1

    def _other(self, old: Tensor, grad: Tensor, at: slice, t: int) -> Tensor:
        """What the trust ratio sets the parameters' norm against."""
        raise NotImplementedError

    def _trust(self, old: Tensor, other: Tensor) -> Tensor:
        """q of every layer, from both norms."""
        raise NotImplementedError


class Lars(Layerwise):
    states = 1

    def _other(self, old: Tensor, grad: Tensor, at: slice, t: int) -> Tensor:
        return grad

    def _trust(self, old: Tensor, other: Tensor) -> Tensor:
        return TRUST * old / (other + self.hyper.weight_decay * old)

    def step(self, new: Tensor, old: Tensor, grad: Tensor, at: slice, lr: float, t: int) -> None:
        buffer = self.state[0][at].mul_(self.hyper.momentum)
        torch.sub(old, buffer.add_(self._decayed(old, grad), alpha=lr), out=new)


class Lamb(Layerwise, Adam):
    """The second pass makes the direction again from the moments: cheaper than to keep it."""

    eps = 1e-6

    def _other(self, old: Tensor, grad: Tensor, at: slice, t: int) -> Tensor:
        self._moments(grad, at)
        return self._direction(old, grad, at, t)

    def _trust(self, old: Tensor, other: Tensor) -> Tensor:
        return old / other

    def _direction(self, old: Tensor, grad: Tensor, at: slice, t: int) -> Tensor:
        direction = self._corrected(self.state[0][at], self.state[1][at], t)
        return direction.add_(old, alpha=self.hyper.weight_decay)
