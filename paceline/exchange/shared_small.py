"""`ps-sync` of a small model over shared memory: every worker applies all of every round.

    gather gradients ─► arrive ─► all arrived? ─► apply the mean of all to one's own parameters

All compute the same from the same numbers in the same order, so all have the same parameters to
the bit. That is more arithmetic than each worker applying a shard for all, but nobody waits for
another's shard, and parameters stay in the cache of the core that uses them; for a small model
both are worth more. Gradients of even and odd rounds have rows of their own: whoever is ahead
writes one while others still read the other.

Whoever comes back takes parameters and state that one of the others leaves for it after the round
in which it was let in.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from paceline.errors import PeerLost
from paceline.exchange.base import (
    Among,
    Closed,
    Copied,
    Exchange,
    Gradient,
    Hosted,
    Outcome,
    Post,
)
from paceline.exchange.dealing import Dealing
from paceline.exchange.layout import READY, ROLL, final_word
from paceline.exchange.muster import Muster, Turnout
from paceline.exchange.putting_back import put_back
from paceline.exchange.replica import Replica
from paceline.exchange.traffic import with_shards
from paceline.server.rules import Layers, make_rule
from paceline.server.table import Table
from paceline.transport.board import Board
from paceline.types import Traffic

ENDING, GIVING = 0, 1  # what one of them does at a time


class SharedSmall(Exchange):
    """The board has, a word each: ready; then the muster; and of which round the parameters are
    that whoever took the most rounds has left to all in the end.

    All end after the same round, and keep a checkpoint after the same round: who was asked to says
    so with its gradient.
    """

    def __init__(self, post: Post) -> None:
        assert post.board is not None
        assert post.params is not None
        assert post.grads is not None
        self._post = post
        self._shared, self._left = post.params
        self._rows = post.grads.view(2, post.room, -1)
        self._own = [rows[post.index] for rows in self._rows]
        self._final = final_word(post.room)
        self._board = Board(post.board, self._final + 1, post.spin, post.slate)
        self._muster = Muster(self._board, ROLL, post.workers, post.room)
        self._dealing = Dealing(post.index, post.crew, post.whole, post.balance, post.room)
        self._round = 0
        self._last: tuple[int, Turnout] | None = None  # round that was closed
        self._update = 0.0

    def start(self, replica: Replica) -> None:
        post, board = self._post, self._board
        self._replica = replica
        if post.first and not board.words[READY]:
            self._shared.copy_(replica.flat)
            board.post(READY, 1)
        board.wait(READY, 1, "the first parameters", peer=post.beginner)
        replica.flat.copy_(self._shared)
        # Applied where the model reads them, or beside a GPU that gets a copy.
        self._flat = replica.flat.cpu()
        layers = Layers(replica.layers)
        self._rule = rule = make_rule(post.rule, replica.size, post.hyper, layers=layers)
        self._tables = [
            Table(self._flat[None], rows, rule, kernels=post.kernels) for rows in self._rows
        ]
        if post.life:
            self._come_back()

    def _come_back(self) -> None:
        """Go on after the round in which the others let this worker in."""
        muster, mine = self._muster, self._post.index
        joined = muster.ask(mine)
        if joined is None:
            self.over, joined = True, int(self._board.words[self._final])
            self._flat.copy_(self._shared)
        else:
            if not muster.await_given(joined):
                raise PeerLost(f"everybody who had the parameters of round {joined} is gone.")
            self._flat.copy_(self._left)
            if self._post.state is not None:
                self._rule.state.copy_(self._post.state)
            turnout = muster.turnout(joined)
            self._last = joined, turnout
            self.over, self.share = turnout.stop, self._dealing.join(turnout, muster.costs())
        self._show()
        self._round = self.round = self.taken = joined

    def step(self, gradient: Gradient, meanwhile: Callable[[], float]) -> Outcome:
        began = time.monotonic()
        muster = self._muster
        self._round += 1
        now, odd = self._round, self._round % 2
        muster.begin(now)
        if gradient.weight:
            self._replica.gather(self._own[odd])
        muster.arrive(
            self._post.index,
            now,
            gradient.weight,
            gradient.lr,
            seconds=gradient.spent(until=began),
            stopping=gradient.stopping,
            keeping=gradient.keeping,
            leaving=gradient.parting,
        )
        elsewhere = 0.0
        asked = here = time.monotonic()
        if not muster.complete(now):
            elsewhere = meanwhile()
            muster.wait(now)
            here = time.monotonic()
        turnout = muster.turnout(now)
        self._last = now, turnout
        table = self._tables[odd]
        table.version = now - 1
        table.apply(turnout.pushes, turnout.rate, 0)
        self._show()
        share = self._dealing.after(turnout)
        if turnout.invited:
            self._give(now)
        done = time.monotonic()
        self._update += done - here
        self.sent += self._replica.size * 4
        self.received += self._replica.size * 4
        return Outcome(
            began=began,
            ended=done,
            push=asked - began,
            wait=here - asked - elsewhere,
            update=done - here,
            version=now,
            share=share,
            stop=turnout.stop or gradient.parting,
            keep=turnout.keep,
        )

    @property
    def closed(self) -> Closed | None:  # type: ignore[override]
        if self._last is None:
            return None
        now, turnout = self._last
        there = partial(self._muster.serves, now=now)
        return Closed(now, turnout.pushes, turnout.rate, there)

    def _show(self) -> None:
        if self._flat is not self._replica.flat:
            self._replica.flat.copy_(self._flat)

    def _give(self, now: int) -> None:
        """Leave what those need who were let in in this round. The first does it, or the next if
        that one dies over it; all have the same."""
        with self._board.owning(GIVING):
            if not self._muster.given(now):
                self._left.copy_(self._flat)
                if self._post.state is not None:
                    self._post.state.copy_(self._rule.state)
                self._muster.give(now, self._dealing.costs())

    def keep(self, among: Among, copied: Copied) -> dict[str, Tensor]:
        """Everybody's own: the model is small, and nobody has to hand it round."""
        return {
            "parameters": copied("parameters", self._flat),
            "state": copied("state", self._rule.state),
            "round": torch.tensor(self._round),
        }

    def restore(self, kept: dict[str, Tensor]) -> None:
        self._replica.restore(kept["parameters"])
        self._flat.copy_(kept["parameters"])
        self._rule.state.copy_(kept["state"])
        self._round = int(kept["round"])
        put_back(self._board, len(self._post.crew))  # whoever dies from here on comes back to all

    def finish(self) -> None:
        with self._board.owning(ENDING):
            if self._round > self._board.words[self._final]:
                self._shared.copy_(self._flat)
                self._board.words[self._final] = self._round
        self._muster.finish(self._post.index)

    def leave(self) -> None:
        """All others have what this one has."""
        self._muster.leave(self._post.index)

    def close(self) -> None:
        self._replica.flat.copy_(self._shared)

    def traffic(self) -> tuple[Traffic, ...]:
        return with_shards(self._post.shards, self.sent)

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
            for index in self._post.hosts
            for a, b in [self._post.shards[index]]
        ]
