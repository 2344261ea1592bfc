"""Update rules that take each parameter by itself. Step for step what torch.optim does.

A rule owns its state (momentum, second moments) for one flat range of parameters and works on any
part of it, so the same code runs in a server on a chunk that fits the cache and in a lone worker
on a layer. `new` and `old` may be the same memory.

With gradient g, rate η, decay λ, step t counted from 1:

    sgd        p ← p − η (g + λp)
    momentum   b ← μb + (g + λp);  p ← p − η b
    nesterov   b ← μb + (g + λp);  p ← p − η (g + λp + μb)
    adagrad    s ← s + (g + λp)²;  p ← p − η (g + λp) / (√s + ε)
    adam       m ← β₁m + (1−β₁)(g + λp);  v ← β₂v + (1−β₂)(g + λp)²
               p ← p − η/(1−β₁ᵗ) · m / (√v/√(1−β₂ᵗ) + ε)
    adamw      p ← p (1 − ηλ), then adam with λ = 0
    ftrl       z ← z + g − (√(n + g²) − √n) p / η;  n ← n + g²
               p ← 0 where |z| ≤ λ₁, else (sgn(z) λ₁ − z) / ((β + √n) / η + λ)

The last is McMahan et al. (2013), and forgets what the parameters were at first: it is for models
that begin at zero.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from paceline.server.catalog import CHUNK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

Part = tuple[Tensor, Tensor, Tensor, slice]  # new, old, gradient, and where they lie in the range


TINY = 1e-30  # of a rate


@dataclass(frozen=True, slots=True, kw_only=True)
class Hyper:
    """What a rule needs besides the rate, which comes with every gradient."""

    momentum: float = 0.9
    weight_decay: float = 0.0
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 0.0  # 0 takes the rule's own
    l1: float = 0.0
    beta: float = 1.0  # of ftrl

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Hyper:
        known = {f.name for f in fields(cls)}
        return cls(**{k: float(v) for k, v in values.items() if k in known})


class Rule:
    """Plain SGD, and the base of the others: they override `_direction` or `step`."""

    states = 0
    layerwise = False  # needs to see the whole range before it changes any of it

    def __init__(self, size: int, hyper: Hyper, state: Tensor | None = None) -> None:
        self.size = size
        self.hyper = hyper
        self.state = torch.zeros(self.states, size) if state is None else state

    def chunks(self) -> list[slice]:
        """Its range in pieces that fit the cache and that it can work on."""
        return chunks(0, self.size)

    def update(
        self,
        parts: Iterable[Part],
        lr: float,
        t: int,
        before: Callable[[Part], None] | None = None,
    ) -> None:
        """The t-th update, of all that has a gradient; each part lies within one layer's chunk.

        `before` is called with each part before it is changed.
        """
        for part in parts:
            if before is not None:
                before(part)
            new, old, grad, at = part
            self.step(new, old, grad, at, lr, t)

    def measure(
        self,
        parts: Iterable[Part],
        t: int,
        first: int = 0,
        before: Callable[[Part], None] | None = None,
    ) -> None:
        """What must be known of all parts before the first is changed: here nothing.

        Where this changes state, parts before `first` have been changed, and `before` is called
        with each other.
        """

    def step(self, new: Tensor, old: Tensor, grad: Tensor, at: slice, lr: float, t: int) -> None:
        """Write `new` from `old` and `grad`; `at` is where they lie in this rule's range."""
        direction = self._direction(old, grad, at, t)
        if new is old:
            old.add_(direction, alpha=-lr)  # a little quicker
        else:
            torch.add(old, direction, alpha=-lr, out=new)

    def _decayed(self, old: Tensor, grad: Tensor) -> Tensor:
        decay = self.hyper.weight_decay
        return torch.add(grad, old, alpha=decay) if decay else grad

    def _direction(self, old: Tensor, grad: Tensor, at: slice, t: int) -> Tensor:
        return self._decayed(old, grad)


class Momentum(Rule):
    states = 1

    def _direction(self, old: Tensor, grad: Tensor, at: slice, t: int) -> Tensor:
        return self.state[0][at].mul_(self.hyper.momentum).add_(self._decayed(old, grad))


class Nesterov(Momentum):
    def _direction(self, old: Tensor, grad: Tensor, at: slice, t: int) -> Tensor:
        buffer = super()._direction(old, grad, at, t)
        return torch.add(self._decayed(old, grad), buffer, alpha=self.hyper.momentum)


class Adagrad(Rule):
    states = 1

    def _direction(self, old: Tensor, grad: Tensor, at: slice, t: int) -> Tensor:
        g = self._decayed(old, grad)
        total = self.state[0][at].addcmul_(g, g)
        return g / total.sqrt().add_(self.hyper.eps or 1e-10)


class Adam(Rule):
    states = 2
    eps = 1e-8

    def _direction(self, old: Tensor, grad: Tensor, at: slice, t: int) -> Tensor:
        return self._corrected(*self._moments(self._decayed(old, grad), at), t)

    def _moments(self, g: Tensor, at: slice) -> tuple[Tensor, Tensor]:
        h = self.hyper
        first = self.state[0][at].lerp_(g, 1 - h.beta1)
        second = self.state[1][at].mul_(h.beta2).addcmul_(g, g, value=1 - h.beta2)
        return first, second

    def _corrected(self, first: Tensor, second: Tensor, t: int) -> Tensor:
        h = self.hyper
        size = (second.sqrt() / (1 - h.beta2**t) ** 0.5).add_(h.eps or self.eps)
        direction: Tensor = (first / size).div_(1 - h.beta1**t)
        return direction


class AdamW(Adam):
    def _decayed(self, old: Tensor, grad: Tensor) -> Tensor:
        return grad

    def step(self, new: Tensor, old: Tensor, grad: Tensor, at: slice, lr: float, t: int) -> None:
        direction = self._direction(old, grad, at, t)
        torch.mul(old, 1 - lr * self.hyper.weight_decay, out=new)
        new.add_(direction, alpha=-lr)


class Ftrl(Rule):
    """Weights follow from the state. Before the first gradient it is the other way round: the state
    is that from which a weight follows as it is, so one that does not begin at zero stays there."""

    states = 2

    def step(self, new: Tensor, old: Tensor, grad: Tensor, at: slice, lr: float, t: int) -> None:
        h, (z, n) = self.hyper, (row[at] for row in self.state)
        if not lr > TINY:  # a rate of nothing changes nothing
            new.copy_(old)
            return
        begun = old.mul(h.beta / lr + h.weight_decay).add_(old.sign(), alpha=h.l1).neg_()
        torch.where(n == 0, begun, z, out=z)
        more = torch.addcmul(n, grad, grad)
        root = more.sqrt()
        z.add_(grad).addcmul_(root - n.sqrt(), old, value=-1 / lr)
        n.copy_(more)
        beyond = (z.abs() - h.l1).clamp_(min=0).copysign_(z).neg_()
        torch.div(beyond, root.add_(h.beta).div_(lr).add_(h.weight_decay), out=new)


def chunks(start: int, stop: int, longest: int | None = None) -> list[slice]:
    """The range in pieces, by default such that fit the cache."""
    step = longest or CHUNK
    return [slice(a, min(a + step, stop)) for a in range(start, stop, step)]
