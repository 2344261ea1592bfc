"""How much shared memory a strategy needs. No torch here: the supervisor reads this."""

from __future__ import annotations

from typing import NamedTuple

from paceline.exchange.catalog import Strategy
from paceline.server.catalog import LAYERWISE, STATES


class Layout(NamedTuple):
    """Copies of the flat parameters (each `size` floats) and words on the board."""

    params: int
    grads: int
    state: int
    board: int

    @property
    def copies(self) -> int:
        return self.params + self.grads + self.state


def layout(strategy: Strategy, workers: int, shards: int, rule: str, layers: int = 0) -> Layout:
    """Only the board depends on `layers`, how many the model has, and only for layer-wise rules."""
    if strategy.samples == "slices":
        # One place for all, since nobody reads while it is written; each owner has its own state.
        norms = shards * (1 + 2 * layers) if rule in LAYERWISE else 0
        return Layout(params=1, grads=workers, state=0, board=1 + 2 * workers + shards + norms)
    # A place each, and the state travels from owner to owner; gradients stay where they are.
    return Layout(params=workers, grads=0, state=STATES[rule], board=1 + 2 * shards)
