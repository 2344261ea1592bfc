"""`ps-sync --backup k` over shared memory: a round closes with the first N − k gradients.

    gather gradients ─► is the round still open? ─no─► dropped: take the current parameters
                                 │ yes
                                 ▼
              the (N − k)th to arrive applies them all ─► the next round is open

Nobody owns a shard here: its owner could be the very worker nobody waits for. There are two
places for the parameters and the rule's state, and round r is computed from place r mod 2. Whoever
still reads a place when it is written again is a round late, and what it computes is dropped.
Whoever dies while it closes a round has changed nothing: another closes it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from paceline.exchange.base import Among, Copied, Exchange, Gradient, Hosted, Outcome, Post
from paceline.exchange.layout import READY, ROLL
from paceline.exchange.putting_back import put_back, take
from paceline.exchange.quorum import Quorum
from paceline.exchange.replica import Replica
from paceline.exchange.traffic import with_shards
from paceline.server.rules import Layers, make_rule
from paceline.server.table import Table
from paceline.transport.board import Board
from paceline.types import Traffic


class SharedBackup(Exchange):
    """The board has, a word each: ready; then the quorum."""

    def __init__(self, post: Post) -> None:
        assert post.board is not None
        assert post.params is not None
        assert post.grads is not None
        self._post = post
        self._params = post.params
        self._grads = post.grads
        self._board = Board(post.board, ROLL + Quorum.words(post.workers), post.spin, post.slate)
        self._quorum = Quorum(self._board, ROLL, post.workers)
        self._round = 0
        self._update = 0.0

    def start(self, replica: Replica) -> None:
        post, board = self._post, self._board
        self._replica = replica
        layers = Layers(replica.layers)
        states = post.state.view(2, -1, replica.size) if post.state is not None else None
        state = states[0] if states is not None else None
        rule = make_rule(post.rule, replica.size, post.hyper, state, layers)
        self._table = Table(self._params, self._grads, rule, states=states)
        if post.first and not board.words[READY]:
            self._params[0].copy_(replica.flat)
            board.post(READY, 1)
        board.wait(READY, 1, "the first parameters", peer=post.beginner)
        if post.life:
            with board.owning(0):
                self._quorum.join(post.index)
        self._take()
        if not post.life:
            self._round = 0  # its first samples are the first round's, even if that is over by now
        self.round = self.taken = self._round
        self.share = self._share()

    def step(self, gradient: Gradient, meanwhile: Callable[[], float]) -> Outcome:
        began = time.monotonic()
        quorum, mine = self._quorum, self._post.index
        now, updated = self._round, 0.0
        if gradient.weight:
            self._replica.gather(self._grads[mine])
        seen = quorum.present()
        with self._board.owning(0):
            late = quorum.open() != now
            if not late:
                quorum.arrive(mine, gradient.weight, gradient.lr)
                if gradient.parting:  # the next round is shared out without it
                    quorum.finish(mine)
                updated = self._close_round()
        elsewhere = 0.0
        asked = time.monotonic()
        if not late and quorum.open() == now:
            elsewhere = meanwhile()
            self._await_round(now, seen)
        waited = time.monotonic() - asked - elsewhere
        self._take()
        before, self.share = self.share, self._share()
        self.sent += self._replica.size * 4
        self.received += self._replica.size * 4
        ended = time.monotonic()
        return Outcome(
            began=began,
            ended=ended,
            push=asked - began - updated,
            pull=ended - asked - waited - elsewhere,
            wait=waited,
            update=updated,
            version=self._round,
            dropped=late,
            skipped=self._round - now - 1,
            share=self.share if self.share != before else None,
            stop=gradient.stopping or gradient.parting,
            keep=gradient.keeping,
        )

    def _await_round(self, now: int, seen: list[int]) -> None:
        """Until this round is closed; by this worker, if those are gone who would have.

        `seen` is who was present before it arrived.
        """
        quorum = self._quorum
        what = f"enough workers in round {now + 1}"
        while not self._board.wait(quorum.rounds, now + 1, what, partial(quorum.changed, seen)):
            seen = quorum.present()
            with self._board.owning(0):
                if quorum.open() == now:
                    self._close_round()

    def _close_round(self) -> float:
        """Apply what has arrived, if it is enough; the seconds that took. Owned by the caller."""
        quorum, now = self._quorum, self._quorum.open()
        pushes = quorum.pushes(self._post.workers - self._post.backup)
        if pushes is None:
            return 0.0
        began = time.monotonic()
        self._table.current, self._table.version = now % 2, now
        rate = quorum.rate(pushes[0][0]) if pushes else 0.0
        self._table.apply(pushes, rate, (now + 1) % 2)
        quorum.close()
        seconds = time.monotonic() - began
        self._update += seconds
        return seconds

    def _share(self) -> tuple[int, int]:
        """This worker's, of the round that it goes on with; if that is over, none."""
        return self._quorum.share(self._post.index, self._round, self._post.whole)

    def _take(self) -> None:
        """Go on from the newest round."""
        self._round = self._quorum.open()
        newest = self._params[self._round % 2]
        if self._replica.on_host:
            self._replica.bind(newest)
        else:
            self._replica.flat.copy_(newest)

    def finish(self) -> None:
        """Leave; those who wait may be enough without this worker."""
        with self._board.owning(0):
            self._quorum.finish(self._post.index)
            self._close_round()

    def close(self) -> None:
        self._take()

    def keep(self, among: Among, copied: Copied) -> dict[str, Tensor]:
        """The first keeps the newest round, which nobody closes meanwhile: all go on from there."""
        if not among.first:
            return {}
        with self._board.owning(0):
            self._table.current = self._quorum.open() % 2
            params, state = self._table.held
            kept = {"round": torch.tensor(self._quorum.open())}
            kept["parameters"] = copied("parameters", params)
            return kept | {"state": copied("state", state)}

    def restore(self, kept: dict[str, Tensor]) -> None:
        if self._post.first:
            now = int(kept["round"])
            self._table.current = now % 2
            for name, place in zip(("parameters", "state"), self._table.held, strict=True):
                take(kept[name], place)
            self._quorum.go_on(now)
        put_back(self._board, len(self._post.crew))
        self._take()
        self.round = self._round
        self.share = self._share()

    def traffic(self) -> tuple[Traffic, ...]:
        return with_shards(self._post.shards, self.sent)

    def hosted(self) -> list[Hosted]:
        """One server, which is whoever closes a round; it is told of by the first worker."""
        if not self._post.first:
            return []
        rounds, size = self._quorum.open(), self._table.size * 4
        return [
            Hosted(
                server=0,
                holds=size,
                applied=rounds,
                sent=size * self._post.workers * rounds,
                received=size * (self._post.workers - self._post.backup) * rounds,
                update=self._update,
            )
        ]
