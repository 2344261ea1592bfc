"""The update rules by name: how a gradient changes parameters."""

from __future__ import annotations

from torch import Tensor

from paceline.errors import UnknownName
from paceline.server.catalog import CHUNK, LAYERWISE, RULES, STATES
from paceline.server.elementwise import (
    Adagrad,
    Adam,
    AdamW,
    Ftrl,
    Hyper,
    Momentum,
    Nesterov,
    Part,
    Rule,
    chunks,
)
from paceline.server.layerwise import Lamb, Lars, Layers, Layerwise

__all__ = ["CHUNK", "Hyper", "Layers", "Part", "Rule", "chunks", "damped", "make_rule"]

_ELEMENTWISE: dict[str, type[Rule]] = {
    "sgd": Rule,
    "momentum": Momentum,
    "nesterov": Nesterov,
    "adagrad": Adagrad,
    "adam": Adam,
    "adamw": AdamW,
    "ftrl": Ftrl,
}
_LAYERWISE: dict[str, type[Layerwise]] = {"lars": Lars, "lamb": Lamb}
_KINDS = _ELEMENTWISE | _LAYERWISE
assert _KINDS.keys() == RULES.keys() == STATES.keys()
assert _LAYERWISE.keys() == LAYERWISE
assert all(kind.states == STATES[name] for name, kind in _KINDS.items())


def make_rule(
    name: str,
    size: int,
    hyper: Hyper,
    state: Tensor | None = None,
    layers: Layers | None = None,
) -> Rule:
    """A rule for `size` parameters; `state` is zeroed memory of that size to keep its state in.

    `layers` says where the model's layers lie; without it the whole range is one layer.
    """
    if name in _LAYERWISE:
        return _LAYERWISE[name](size, hyper, state, layers or Layers((size,)))
    if name not in _ELEMENTWISE:
        raise UnknownName("optimizer", name, _KINDS)
    return _ELEMENTWISE[name](size, hyper, state)


def damped(lr: float, staleness: int) -> float:
    """η / max(1, staleness): a gradient counts for less, the older the parameters it is of."""
    return lr / max(1, staleness)
