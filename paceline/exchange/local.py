"""`single` and `independent`: nothing is exchanged; each worker applies its own gradients."""

from __future__ import annotations

import time

import torch

from paceline.exchange.base import Gradient, Outcome, Post
from paceline.exchange.replica import Replica
from paceline.server.rules import chunks, make_rule


class Local:
    """Straight from the gradients that backward left, with no copy in between."""

    sent = 0
    received = 0

    def __init__(self, post: Post) -> None:
        self._post = post
        self._version = 0

    def start(self, replica: Replica) -> None:
        self._replica = replica
        self._rule = make_rule(self._post.rule, replica.size, self._post.hyper)

    def step(self, gradient: Gradient) -> Outcome:
        began = time.perf_counter()
        self._version += 1
        flat = self._replica.flat
        with torch.no_grad():
            for span, grad in self._replica.gradients():
                for at in chunks(span.start, span.stop):
                    part = flat[at]
                    piece = grad[at.start - span.start : at.stop - span.start]
                    self._rule.step(part, part, piece, at, gradient.lr, self._version)
        self._replica.clear()
        return Outcome(
            update=time.perf_counter() - began, version=self._version, stop=gradient.stopping
        )

    def finish(self) -> None:
        pass

    def close(self) -> None:
        pass
