"""Update rules: how a gradient changes parameters. Step for step what torch.optim does.

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
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from paceline.errors import UnknownName
from paceline.server.catalog import RULES, STATES

if TYPE_CHECKING:
    from collections.abc import Mapping

# 64 Ki floats: gradient, state and both versions of a chunk stay in a core's own cache.
CHUNK = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Hyper:
    """What a rule needs besides the rate, which comes with every gradient."""

    momentum: float = 0.9
    weight_decay: float = 0.0
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 0.0  # 0 takes the rule's own

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Hyper:
        known = {f.name for f in fields(cls)}
        return cls(**{k: float(v) for k, v in values.items() if k in known})


class Rule:
    """Plain SGD, and the base of the others: they override `_direction` or `step`."""

    states = 0

    def __init__(self, size: int, hyper: Hyper, state: Tensor | None = None) -> None:
        self.hyper = hyper
        self.state = torch.zeros(self.states, size) if state is None else state

    def step(self, new: Tensor, old: Tensor, grad: Tensor, at: slice, lr: float, t: int) -> None:
        """Write `new` from `old` and `grad`; `at` is where they lie in this rule's range."""
        torch.add(old, self._direction(old, grad, at, t), alpha=-lr, out=new)

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

    def _direction(self, old: Tensor, grad: Tensor, at: slice, t: int) -> Tensor:
        h = self.hyper
        g = self._decayed(old, grad)
        first = self.state[0][at].lerp_(g, 1 - h.beta1)
        second = self.state[1][at].mul_(h.beta2).addcmul_(g, g, value=1 - h.beta2)
        size = (second.sqrt() / (1 - h.beta2**t) ** 0.5).add_(h.eps or 1e-8)
        direction: Tensor = (first / size).div_(1 - h.beta1**t)
        return direction


class AdamW(Adam):
    def _decayed(self, old: Tensor, grad: Tensor) -> Tensor:
        return grad

    def step(self, new: Tensor, old: Tensor, grad: Tensor, at: slice, lr: float, t: int) -> None:
        direction = self._direction(old, grad, at, t)
        torch.mul(old, 1 - lr * self.hyper.weight_decay, out=new)
        new.add_(direction, alpha=-lr)


_KINDS: dict[str, type[Rule]] = {
    "sgd": Rule,
    "momentum": Momentum,
    "nesterov": Nesterov,
    "adagrad": Adagrad,
    "adam": Adam,
    "adamw": AdamW,
}
assert _KINDS.keys() == RULES.keys() == STATES.keys()
assert all(kind.states == STATES[name] for name, kind in _KINDS.items())


def make_rule(name: str, size: int, hyper: Hyper, state: Tensor | None = None) -> Rule:
    """A rule for `size` parameters; `state` is zeroed memory of that size to keep its state in."""
    if name not in _KINDS:
        raise UnknownName("optimizer", name, _KINDS)
    return _KINDS[name](size, hyper, state)


def damped(lr: float, staleness: int) -> float:
    """η / max(1, staleness): a gradient counts for less, the older the parameters it is of."""
    return lr / max(1, staleness)


def chunks(start: int, stop: int) -> list[slice]:
    """The range in pieces that fit the cache."""
    return [slice(a, min(a + CHUNK, stop)) for a in range(start, stop, CHUNK)]
