"""`hogwild`: all workers train on the same memory, without locks and without waiting.

    p ← rule(p, own gradient)        wherever the others are just then

Two workers that write the same number at once lose one of the two updates, and a step may read
parameters of which some are newer than others. Where gradients are sparse or workers are few that
costs little, and nothing is faster (Niu, Recht, Ré and Wright, 2011).
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from torch import Tensor

from paceline.errors import RequestError
from paceline.exchange.base import Among, Copied, Exchange, Gradient, Outcome, Post
from paceline.exchange.in_place import InPlace
from paceline.exchange.putting_back import put_back, take
from paceline.exchange.replica import Replica
from paceline.exchange.seats import Seats
from paceline.server.rules import Layers, damped, make_rule
from paceline.transport.board import Board


class Hogwild(Exchange):
    """The board has: ready; a seat for the steps of each worker. A rule's state is shared too."""

    def __init__(self, post: Post) -> None:
        assert post.board is not None
        assert post.params is not None
        self._post = post
        self._flat = post.params[0]
        self._board = Board(post.board, 1 + Seats.words(post.room), post.spin, post.slate)
        self._taken = Seats(self._board, 1, post.workers, post.room)
        self._seen = 0

    def start(self, replica: Replica) -> None:
        post = self._post
        if not replica.on_host:
            raise RequestError(
                "hogwild trains in the host's own memory: use --device cpu, or ps-async on GPUs."
            )
        self._replica = replica
        layers = Layers(replica.layers)
        rule = make_rule(post.rule, replica.size, post.hyper, post.state, layers)
        self._in_place = InPlace(replica, self._flat, rule, post.kernels)
        if post.first and not self._board.words[0]:
            self._flat.copy_(replica.flat)
            self._board.post(0, 1)
        self._board.wait(0, 1, "the first parameters", peer=self._post.beginner)
        self.taken = self._board.words[self._taken[post.index]]
        self._seen = sum(self._board.words[word] for word in self._taken.there())
        replica.bind(self._flat)

    @property
    def updates(self) -> int:
        return self._seen

    def step(self, gradient: Gradient, meanwhile: Callable[[], float]) -> Outcome:
        began = time.monotonic()
        words, mine = self._board.words, self._taken[self._post.index]
        version = sum(words[word] for word in self._taken.there())
        staleness = version - self._seen
        lr = damped(gradient.lr, staleness) if self._post.damp_stale else gradient.lr
        self._in_place.apply(lr, version + 1)
        self.taken += 1
        words[mine] = self.taken
        self._seen = sum(words[word] for word in self._taken.there())
        ended = time.monotonic()
        return Outcome(
            began=began,
            ended=ended,
            update=ended - began,
            version=self._seen,
            staleness=staleness,
            stop=gradient.stopping or gradient.parting,
            keep=gradient.keeping,
        )

    def keep(self, among: Among, copied: Copied) -> dict[str, Tensor]:
        """The first keeps what is everybody's, while the others go on changing it.

        Steps are counted first: those that count are in it whole, and of later ones, which are
        taken again, there may be some numbers.
        """
        if not among.first:
            return {}
        taken = [self._board.words[word] for word in self._taken.there()]
        kept = {"taken": torch.tensor(taken)}
        kept["parameters"] = copied("parameters", self._flat)
        if self._post.state is not None:
            kept["state"] = copied("state", self._post.state)
        return kept

    def restore(self, kept: dict[str, Tensor]) -> None:
        if self._post.first:
            take(kept["parameters"], self._flat)
            if self._post.state is not None:
                take(kept["state"], self._post.state)
            for worker, taken in enumerate(kept["taken"].tolist()):
                self._board.words[self._taken[worker]] = taken
        put_back(self._board, len(self._post.crew))
        self.taken = self._board.words[self._taken[self._post.index]]
        self._seen = sum(self._board.words[word] for word in self._taken.there())
