"""`ps-sync` of a small model over shared memory: every worker applies all of every round.

    gather gradients ─► arrive ─► all arrived? ─► apply the mean of all to one's own parameters

All compute the same from the same numbers in the same order, so all have the same parameters to
the bit. That is more arithmetic than each worker applying a shard for all, but nobody waits for
another's shard, and parameters stay in the cache of the core that uses them; for a small model
both are worth more. Gradients of even and odd rounds have rows of their own: whoever is ahead
writes one while others still read the other.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from torch import Tensor

from paceline.exchange.balance import Pace
from paceline.exchange.base import Exchange, Gradient, Hosted, Outcome, Post
from paceline.exchange.layout import balance_words
from paceline.exchange.replica import Replica
from paceline.exchange.shared_balance import SharedBalance
from paceline.server.rules import Layers, make_rule
from paceline.server.table import Table
from paceline.transport.board import GONE, Board

FINAL = 1
ASKED, STOP, KEEP = 4, 1, 2  # a word is weight · ASKED, and what was asked


class SharedSmall(Exchange):
    """The board has, a word each: ready, final; arrived and last a worker; weights even and odd;
    and where shares are balanced, paces.

    With a weight goes what its worker was asked: to stop, so that all end after the same round,
    and for a checkpoint, which all keep after the same round.

    A worker that has left has arrived at GONE, and took part in rounds up to its last. Whoever
    took the most leaves its parameters to all: `final` is how many.
    """

    def __init__(self, post: Post) -> None:
        assert post.board is not None
        assert post.params is not None
        assert post.grads is not None
        self._post = post
        self._shared = post.params[0]
        self._rows = post.grads.view(2, post.workers, -1)
        self._own = [rows[post.index] for rows in self._rows]
        count = post.workers
        self._arrived = range(2, 2 + count)
        self._last = range(2 + count, 2 + 2 * count)
        self._weights = (range(2 + 2 * count, 2 + 3 * count), range(2 + 3 * count, 2 + 4 * count))
        paces, words = 2 + 4 * count, balance_words(count) if post.balance else 0
        self._board = Board(post.board, paces + words, post.spin)
        self._balance = SharedBalance(self._board, paces, post) if post.balance else None
        self._round = 0
        self._update = 0.0

    def start(self, replica: Replica) -> None:
        post = self._post
        self._replica = replica
        if post.index == 0:
            self._shared.copy_(replica.flat)
            self._board.post(0, 1)
        self._board.wait(0, 1, "the first parameters from worker-0")
        replica.flat.copy_(self._shared)
        # Applied where the model reads them, or beside a GPU that gets a copy.
        self._flat = replica.flat.cpu()
        layers = Layers(replica.layers)
        self._rule = rule = make_rule(post.rule, replica.size, post.hyper, layers=layers)
        self._tables = [Table(self._flat[None], rows, rule) for rows in self._rows]

    def step(self, gradient: Gradient, meanwhile: Callable[[], float]) -> Outcome:
        began = time.perf_counter()
        board, words, mine = self._board, self._board.words, self._post.index
        self._round += 1
        now, odd = self._round, self._round % 2
        if self._balance is not None:
            self._balance.leave(now, Pace(gradient.weight, gradient.spent()))
        if gradient.weight:
            self._replica.gather(self._own[odd])
        words[self._weights[odd][mine]] = (
            gradient.weight * ASKED + gradient.stopping * STOP + gradient.keeping * KEEP
        )
        board.post(self._arrived[mine], now)
        elsewhere = 0.0
        asked = time.perf_counter()
        if not all(words[word] >= now for word in self._arrived):
            elsewhere = meanwhile()
            for worker, word in enumerate(self._arrived):
                board.wait(word, now, f"worker-{worker} in round {now}")
        here = time.perf_counter()
        table = self._tables[odd]
        table.version = now - 1
        pushes = self._pushes(now)
        table.apply([(w, float(told // ASKED)) for w, told in pushes], gradient.lr, 0)
        if self._flat is not self._replica.flat:
            self._replica.flat.copy_(self._flat)
        done = time.perf_counter()
        self._update += done - here
        self.sent += self._replica.size * 4
        self.received += self._replica.size * 4
        return Outcome(
            exchange=asked - began,
            wait=here - asked - elsewhere,
            update=done - here,
            version=now,
            share=self._balance.share(now) if self._balance is not None else None,
            stop=any(told & STOP for _, told in pushes),
            keep=all(told & KEEP for _, told in pushes),
        )

    def keep(self) -> dict[str, Tensor]:
        """Everybody's own: the model is small, and nobody has to hand it round."""
        return {
            "parameters": self._flat.detach().clone(),
            "state": self._rule.state.clone(),
            "round": torch.tensor(self._round),
        }

    def restore(self, kept: dict[str, Tensor]) -> None:
        self._replica.restore(kept["parameters"])
        self._flat.copy_(kept["parameters"])
        self._rule.state.copy_(kept["state"])
        self._round = int(kept["round"])

    def _pushes(self, now: int) -> list[tuple[int, int]]:
        """Who took part in this round, and what each told of it."""
        words, weights = self._board.words, self._weights[now % 2]
        return [
            (worker, int(words[weights[worker]]))
            for worker, word in enumerate(self._arrived)
            if words[word] != GONE or words[self._last[worker]] >= now
        ]

    def finish(self) -> None:
        with self._board.owning(0):
            if self._round > self._board.words[FINAL]:
                self._shared.copy_(self._flat)
                self._board.words[FINAL] = self._round
        self._board.words[self._last[self._post.index]] = self._round
        self._board.post(self._arrived[self._post.index], GONE)

    def close(self) -> None:
        self._replica.flat.copy_(self._shared)

    def hosted(self) -> list[Hosted]:
        """Each shard is counted where it would be served, though all apply it."""
        return [
            Hosted(
                server=index,
                holds=(b - a) * 4,
                applied=self._round,
                sent=(b - a) * 4 * self._post.workers * self._round,
                received=(b - a) * 4 * self._post.workers * self._round,
                update=self._update / len(self._post.shards),
            )
            for index, (a, b) in enumerate(self._post.shards)
            if index % self._post.workers == self._post.index
        ]
