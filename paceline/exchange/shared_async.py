"""`ps-async` and `ssp` over shared memory: whoever has a gradient is for that moment the server.

Each worker has a place of its own for the parameters. A push takes the shard, writes

    own place ← rule(current place, own gradient)

and makes its own place the current one. Nobody else writes a worker's place, so what it reads
stays as it is until its next push; and until the last word is written the old version stands,
so a worker that dies in mid-push has changed no parameter (a rule's own state, such as momentum,
is changed in place). The gradient is used where backward left it: an exchange costs what a lone
optimizer step costs.

With a bound, a worker that has taken n rounds begins the next only when the slowest has taken
n + 1 − bound, so that at no time one is more than `bound` rounds ahead of another.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

from paceline.exchange.base import Exchange, Gradient, Hosted, Outcome, Post
from paceline.exchange.replica import Piece, Replica
from paceline.server.rules import Layers, damped, make_rule
from paceline.transport.board import GONE, Board


class SharedAsync(Exchange):
    """The board has, a word each: ready; place and version a shard; rounds a worker."""

    def __init__(self, post: Post) -> None:
        assert post.board is not None
        assert post.params is not None
        self._post = post
        self._params = post.params
        count = len(post.shards)
        self._places = range(1, 1 + count)
        self._versions = range(self._places.stop, self._places.stop + count)
        self._rounds = range(self._versions.stop, self._versions.stop + post.workers)
        self._board = Board(post.board, self._rounds.stop, post.spin)
        self._round = 0
        self._seen = [0] * count

    def start(self, replica: Replica) -> None:
        post = self._post
        self._replica = replica
        layers = Layers(replica.layers)
        self._rule = make_rule(post.rule, replica.size, post.hyper, post.state, layers)
        self._own = self._params[post.index]
        self._pieces = [self._views(replica.pieces(a, b)) for a, b in post.shards]
        if post.index == 0:
            self._own.copy_(replica.flat)
            self._board.post(0, 1)
        self._board.wait(0, 1, "the first parameters from worker-0")
        self._pull()
        if replica.device.type == "cpu":
            replica.bind(self._own)

    def _views(self, pieces: list[Piece]) -> list[tuple[Piece, list[torch.Tensor]]]:
        """Each piece with its view in every worker's place, made once."""
        return [(piece, [place[piece.at] for place in self._params]) for piece in pieces]

    def step(self, gradient: Gradient, meanwhile: Callable[[], float]) -> Outcome:
        began = time.perf_counter()
        grads = self._replica.flat_gradients()
        waited = updated = 0.0
        staleness = 0
        # Each begins at another shard, so that two pushes at once rarely want the same one.
        count = len(self._post.shards)
        for turn in range(count):
            shard = (turn + self._post.index) % count
            asked = time.perf_counter()
            with self._board.owning(shard):
                owned = time.perf_counter()
                staleness = max(staleness, self._push(shard, grads, gradient.lr))
            waited += owned - asked
            updated += time.perf_counter() - owned
        self._replica.clear()
        elsewhere = 0.0
        if self._post.bound:
            asked = time.perf_counter()
            elsewhere = self._stay_close(meanwhile)
            waited += time.perf_counter() - asked - elsewhere
        if self._replica.device.type != "cpu":
            self._replica.flat.copy_(self._own)
        self.sent += self._replica.size * 4
        self.received += self._replica.size * 4
        return Outcome(
            exchange=time.perf_counter() - began - waited - updated - elsewhere,
            wait=waited,
            update=updated,
            version=max(self._seen),
            staleness=staleness,
            stop=gradient.stopping,
        )

    def _push(self, shard: int, grads: list[torch.Tensor | None], lr: float) -> int:
        """Apply this worker's gradient to a shard it owns now; how stale the gradient was."""
        words, mine = self._board.words, self._post.index
        current, version = words[self._places[shard]], words[self._versions[shard]]
        staleness = version - self._seen[shard]
        if self._post.damp_stale:
            lr = damped(lr, staleness)
        parts = []
        with torch.no_grad():
            for piece, places in self._pieces[shard]:
                grad, new, old = grads[piece.parameter], places[mine], places[current]
                if grad is None:
                    new.copy_(old)
                else:
                    parts.append((new, old, piece.of(grad), piece.at))
            self._rule.update(parts, lr, version + 1)
        words[self._versions[shard]] = version + 1
        words[self._places[shard]] = mine
        self._seen[shard] = version + 1
        return staleness

    def _stay_close(self, meanwhile: Callable[[], float]) -> float:
        """Wait until the slowest is near; the seconds that something else took meanwhile."""
        board, words = self._board, self._board.words
        self._round += 1
        board.post(self._rounds[self._post.index], self._round)
        least = self._round + 1 - self._post.bound
        if all(words[word] >= least for word in self._rounds):
            return 0.0
        elsewhere = meanwhile()
        for worker, word in enumerate(self._rounds):
            board.wait(word, least, f"worker-{worker} in round {least}")
        self._pull()  # what the others pushed meanwhile
        return elsewhere

    def _pull(self) -> None:
        """The current version of every shard into the own place."""
        words = self._board.words
        for shard, (a, b) in enumerate(self._post.shards):
            with self._board.owning(shard):
                current = words[self._places[shard]]
                if current != self._post.index:
                    self._own[a:b].copy_(self._params[current][a:b])
                self._seen[shard] = words[self._versions[shard]]

    def finish(self) -> None:
        self._board.post(self._rounds[self._post.index], GONE)

    def close(self) -> None:
        self._pull()
        if self._replica.device.type != "cpu":
            self._replica.flat.copy_(self._own)

    def hosted(self) -> list[Hosted]:
        words = self._board.words
        return [
            Hosted(
                server=shard,
                holds=(b - a) * 4,
                applied=words[self._versions[shard]],
                sent=words[self._versions[shard]] * (b - a) * 4,
                received=words[self._versions[shard]] * (b - a) * 4,
            )
            for shard, (a, b) in enumerate(self._post.shards)
            if shard % self._post.workers == self._post.index
        ]
