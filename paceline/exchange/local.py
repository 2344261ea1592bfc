"""`single` and `independent`: nothing is exchanged; each worker applies its own gradients."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from torch import Tensor

from paceline.exchange.base import Among, Copied, Exchange, Gradient, Outcome, Post
from paceline.exchange.in_place import InPlace
from paceline.exchange.replica import Replica
from paceline.server.rules import Layers, make_rule


class Local(Exchange):
    """Straight from the gradients that backward left, with no copy in between."""

    def __init__(self, post: Post) -> None:
        self._post = post
        self._version = 0

    def start(self, replica: Replica) -> None:
        self._replica = replica
        layers = Layers(replica.layers)
        self._rule = make_rule(self._post.rule, replica.size, self._post.hyper, layers=layers)
        self._in_place = InPlace(replica, replica.flat, self._rule, self._post.kernels)

    @property
    def updates(self) -> int:
        return self._version

    def step(self, gradient: Gradient, meanwhile: Callable[[], float]) -> Outcome:
        began = time.monotonic()
        if not gradient.weight:  # none of a short last batch: no gradient, hence no update
            return self._outcome(began, gradient)
        self._version += 1
        if self._post.apply is not None:
            self._post.apply()
            return self._outcome(began, gradient)
        self._in_place.apply(gradient.lr, self._version)
        return self._outcome(began, gradient)

    def keep(self, among: Among, copied: Copied) -> dict[str, Tensor]:
        return {"parameters": copied("parameters", self._replica.flat), **self.keep_rule(copied)}

    def restore(self, kept: dict[str, Tensor]) -> None:
        self._replica.restore(kept["parameters"])
        self.restore_rule(kept)

    def keep_rule(self, copied: Copied) -> dict[str, Tensor]:
        """All but the parameters."""
        state = copied("state", self._rule.state)
        return {"state": state, "version": torch.tensor(self._version)}

    def restore_rule(self, kept: dict[str, Tensor]) -> None:
        self._rule.state.copy_(kept["state"])
        self._version = int(kept["version"])

    def _outcome(self, began: float, gradient: Gradient) -> Outcome:
        ended = time.monotonic()
        return Outcome(
            began=began,
            ended=ended,
            update=ended - began,
            version=self._version,
            stop=gradient.stopping,
            keep=gradient.keeping,
        )
