"""`ps-sync --backup k` over shared memory: a round closes with the first N − k gradients.

    gather gradients ─► is the round still open? ─no─► dropped: take the current parameters
                                 │ yes
                                 ▼
              the (N − k)th to arrive applies them all ─► the next round is open

Nobody owns a shard here: its owner could be the very worker nobody waits for. There are two
places for the parameters, and round r is computed from place r mod 2. Whoever still reads a place
when it is written again is a round late, and what it computes is dropped.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from paceline.exchange.base import Exchange, Gradient, Hosted, Outcome, Post
from paceline.exchange.replica import Replica
from paceline.server.rules import Layers, make_rule
from paceline.server.table import Table
from paceline.transport.board import GONE, Board

ROUND = 1  # the word that counts closed rounds; 0 says that there are parameters


class SharedBackup(Exchange):
    """The board has, a word each: ready, rounds; arrived, weight and rate a worker."""

    def __init__(self, post: Post) -> None:
        assert post.board is not None
        assert post.params is not None
        assert post.grads is not None
        self._post = post
        self._params = post.params
        self._grads = post.grads
        self._arrived = range(2, 2 + post.workers)
        self._weights = range(self._arrived.stop, self._arrived.stop + post.workers)
        self._rates = range(self._weights.stop, self._weights.stop + post.workers)
        self._board = Board(post.board, self._rates.stop, post.spin)
        self._round = 0
        self._update = 0.0

    def start(self, replica: Replica) -> None:
        post = self._post
        self._replica = replica
        layers = Layers(replica.layers)
        rule = make_rule(post.rule, replica.size, post.hyper, post.state, layers)
        self._table = Table(self._params, self._grads, rule)
        if post.index == 0:
            self._params[0].copy_(replica.flat)
            self._board.post(0, 1)
        self._board.wait(0, 1, "the first parameters from worker-0")
        self._take()
        self._round = 0  # its first samples are the first round's, even if that is over by now

    def step(self, gradient: Gradient, meanwhile: Callable[[], float]) -> Outcome:
        began = time.perf_counter()
        words, mine = self._board.words, self._post.index
        now, updated = self._round, 0.0
        if gradient.weight:
            self._replica.gather(self._grads[mine])
        with self._board.owning(0):
            late = words[ROUND] != now
            if not late:
                words[self._weights[mine]] = gradient.weight
                self._board.reals[self._rates[mine]] = gradient.lr
                words[self._arrived[mine]] = now + 1
                updated = self._close_round()
        elsewhere = 0.0
        asked = time.perf_counter()
        if not late and words[ROUND] == now:
            elsewhere = meanwhile()
            self._board.wait(ROUND, now + 1, f"enough workers in round {now + 1}")
        waited = time.perf_counter() - asked - elsewhere
        self._take()
        self.sent += self._replica.size * 4
        self.received += self._replica.size * 4
        return Outcome(
            exchange=time.perf_counter() - began - waited - updated - elsewhere,
            wait=waited,
            update=updated,
            version=self._round,
            dropped=late,
            skipped=self._round - now - 1,
            stop=gradient.stopping,
        )

    def _close_round(self) -> float:
        """Apply what has arrived, if it is enough; the seconds that took. Owned by the caller."""
        words, now = self._board.words, self._board.words[ROUND]
        left = sum(words[word] != GONE for word in self._arrived)
        pushes = [
            (worker, float(words[self._weights[worker]]))
            for worker, word in enumerate(self._arrived)
            if words[word] == now + 1
        ]
        if not pushes or len(pushes) < min(self._post.workers - self._post.backup, left):
            return 0.0
        began = time.perf_counter()
        self._table.current, self._table.version = now % 2, now
        lr = self._board.reals[self._rates[pushes[0][0]]]
        self._table.apply(pushes, lr, (now + 1) % 2)
        self._board.post(ROUND, now + 1)
        seconds = time.perf_counter() - began
        self._update += seconds
        return seconds

    def _take(self) -> None:
        """Go on from the newest round."""
        self._round = self._board.words[ROUND]
        newest = self._params[self._round % 2]
        if self._replica.device.type == "cpu":
            self._replica.bind(newest)
        else:
            self._replica.flat.copy_(newest)

    def finish(self) -> None:
        """Leave; those who wait may be enough without this worker."""
        with self._board.owning(0):
            self._board.words[self._arrived[self._post.index]] = GONE
            self._close_round()

    def close(self) -> None:
        self._take()

    def hosted(self) -> list[Hosted]:
        """One server, which is whoever closes a round; it is told of where worker-0 is."""
        if self._post.index:
            return []
        rounds, size = self._board.words[ROUND], self._table.size * 4
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
