"""How much shared memory a strategy needs. No torch here: the supervisor reads this."""

from __future__ import annotations

from typing import NamedTuple

from paceline.exchange.catalog import Strategy
from paceline.server.catalog import STATES


class Layout(NamedTuple):
    """Copies of the flat parameters (each `size` floats) and words on the board."""

    params: int
    grads: int
    state: int
    board: int

    @property
    def copies(self) -> int:
        return self.params + self.grads + self.state


def layout(strategy: Strategy, workers: int, shards: int, rule: str) -> Layout:
    if strategy.samples == "slices":
        # One place for all, since nobody reads while it is written; each owner has its own state.
        return Layout(params=1, grads=workers, state=0, board=1 + 2 * workers + shards)
    # A place each, and the state travels from owner to owner; gradients stay where they are.
    return Layout(params=workers, grads=0, state=STATES[rule], board=1 + 2 * shards)
