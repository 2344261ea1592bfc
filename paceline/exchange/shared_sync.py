"""`ps-sync` over shared memory: no server process, each worker serves a shard of its own.

    gather gradients ─► arrive ─► all arrived? ─► apply own shards ─► applied ─► all applied?

In a synchronous round everybody waits for everybody anyway, so a server of its own would only take
cycles from the workers and add two hand-overs to the round. Gradients are read where backward's
copy left them and parameters where the shard's owner wrote them: nothing is sent.

Shards cut layers. Before a layer-wise rule is applied, the owners leave the norms of what they
have of each layer on the board, and wait for one another once more.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from torch import Tensor

from paceline.exchange.balance import Pace
from paceline.exchange.base import Exchange, Gradient, Hosted, Outcome, Post
from paceline.exchange.layout import balance_words
from paceline.exchange.replica import Piece, Replica
from paceline.exchange.shared_balance import SharedBalance
from paceline.server.catalog import LAYERWISE
from paceline.server.rules import Layers, make_rule
from paceline.server.table import Table
from paceline.transport.board import GONE, Board

LARGE = 1 << 20  # parameters from which on a copy less is worth more than a few calls more


class SharedSync(Exchange):
    """The board has, a word each: ready; arrived, weight and rate a worker; applied a shard.

    Where shares are balanced it also has paces; for layer-wise rules: measured a shard; two squared
    norms a shard and layer.
    """

    def __init__(self, post: Post) -> None:
        assert post.board is not None
        assert post.params is not None
        assert post.grads is not None
        self._post = post
        self._params = post.params
        self._grads = post.grads
        self._grad = post.grads[post.index]
        self._arrived = range(1, 1 + post.workers)
        self._weights = range(self._arrived.stop, self._arrived.stop + post.workers)
        self._rates = range(self._weights.stop, self._weights.stop + post.workers)
        paces = self._rates.stop + (balance_words(post.workers) if post.balance else 0)
        self._applied = range(paces, paces + len(post.shards))
        self._measured = range(self._applied.stop, self._applied.stop + len(post.shards))
        self._fd = post.board
        self._cuts_layers = post.rule in LAYERWISE and len(post.shards) > 1
        self._round = 0
        self._update = 0.0

    def start(self, replica: Replica) -> None:
        post = self._post
        self._replica = replica
        squares = self._open_board(len(replica.layers))
        board = self._board
        self._balance = SharedBalance(board, self._rates.stop, post) if post.balance else None
        self._own: dict[int, Table] = {}
        self._in_place = replica.from_backward and replica.size >= LARGE
        self._kept: dict[int, list[Piece]] = {}  # of the gradient, for the shards served here
        self._given: list[tuple[Piece, Tensor]] = []  # and for the others', with where it goes
        for index, (a, b) in enumerate(post.shards):
            if index % post.workers == post.index:
                layers = Layers(replica.layers, a, squares, index)
                rule = make_rule(post.rule, b - a, post.hyper, layers=layers)
                pieces = replica.pieces(a, b) if self._in_place else None
                chunks = [slice(p.at.start - a, p.at.stop - a) for p in pieces or ()] or None
                table = Table(self._params[:, a:b], self._grads[:, a:b], rule, chunks)
                self._own[index] = table
                self._kept[index] = pieces or []
            elif self._in_place:
                self._given += [(p, self._grad[p.at]) for p in replica.pieces(a, b, LARGE)]
        if post.index == 0:
            self._params[0].copy_(replica.flat)
            board.post(0, 1)
        board.wait(0, 1, "the first parameters from worker-0")
        self._take()
        if replica.device.type == "cpu":
            replica.bind(self._params[0])

    def _open_board(self, layers: int) -> Tensor | None:
        """The board, and on it the place for norms where layers are cut: [shards, 2, layers]."""
        shards, spin = len(self._post.shards), self._post.spin
        if not self._cuts_layers:
            self._board = Board(self._fd, self._applied.stop, spin)
            return None
        norms = shards * 2 * layers
        self._board = Board(self._fd, self._measured.stop + norms, spin)
        return self._board.doubles(self._measured.stop, norms).view(shards, 2, layers)

    def step(self, gradient: Gradient, meanwhile: Callable[[], float]) -> Outcome:
        began = time.perf_counter()
        self._round += 1
        if self._balance is not None:
            self._balance.leave(self._round, Pace(gradient.weight, gradient.spent()))
        if gradient.weight and self._in_place:
            self._give()
        elif gradient.weight:
            self._replica.gather(self._grad)
        self._board.words[self._weights[self._post.index]] = gradient.weight
        self._board.reals[self._rates[self._post.index]] = gradient.lr
        self._board.post(self._arrived[self._post.index], self._round)
        # Whoever comes last applies at once; whoever comes early has time for something else.
        elsewhere = 0.0 if self._complete() else meanwhile()
        waited, updated = self._apply()
        if self._in_place:
            self._let_go()
        elsewhere += meanwhile()
        waited += self._await_shards()
        self._take()
        self.sent += self._replica.size * 4
        self.received += self._replica.size * 4
        return Outcome(
            exchange=time.perf_counter() - began - waited - updated - elsewhere,
            wait=waited,
            update=updated,
            version=self._round,
            share=self._balance.share(self._round) if self._balance is not None else None,
            stop=gradient.stopping,
        )

    def _give(self) -> None:
        """Copy only what others will apply; what is applied here is read where backward left it."""
        grads = [
            torch.zeros(p.numel()) if grad is None else grad
            for p, grad in zip(
                self._replica.parameters, self._replica.flat_gradients(), strict=True
            )
        ]
        for piece, place in self._given:
            place.copy_(piece.of(grads[piece.parameter]))
        for index, pieces in self._kept.items():
            lent = [piece.of(grads[piece.parameter]) for piece in pieces]
            self._own[index].lend(self._post.index, lent)

    def _let_go(self) -> None:
        """The gradient was used: backward may have its memory again."""
        self._replica.clear()
        for table in self._own.values():
            table.lend(self._post.index, [])

    def _complete(self) -> bool:
        """Whether all have arrived in this round, or left."""
        return all(self._board.words[word] >= self._round for word in self._arrived)

    def _await_shards(self) -> float:
        """Wait until every shard has this round applied; the seconds that took."""
        began = time.perf_counter()
        for index, word in enumerate(self._applied):
            self._board.wait(word, self._round, f"server-{index} in round {self._round}")
        return time.perf_counter() - began

    def _apply(self) -> tuple[float, float]:
        """Apply this round to the shards served here, once all have arrived or left."""
        board, words, now = self._board, self._board.words, time.perf_counter
        began = now()
        for worker, word in enumerate(self._arrived):
            board.wait(word, self._round, f"worker-{worker} in round {self._round}")
        here = now()
        pushes = [
            (worker, float(words[self._weights[worker]]))
            for worker, word in enumerate(self._arrived)
            if words[word] != GONE
        ]
        if not pushes:  # all have left meanwhile: there is no such round
            return here - began, 0.0
        waited = here - began
        if self._cuts_layers:
            agreeing = self._agree(pushes)
            waited, here = waited + agreeing, here + agreeing
        lr = board.reals[self._rates[pushes[0][0]]]  # who serves may have left rates ago
        for index, table in self._own.items():
            table.apply(pushes, lr, 0)
            board.post(self._applied[index], self._round)
        done = now()
        self._update += done - here
        return waited, done - here

    def _agree(self, pushes: list[tuple[int, float]]) -> float:
        """Measure the shards served here, then wait for the others; the seconds waited."""
        for index, table in self._own.items():
            table.measure(pushes, 0)
            self._board.post(self._measured[index], self._round)
        began = time.perf_counter()
        for index, word in enumerate(self._measured):
            self._board.wait(word, self._round, f"server-{index} to measure round {self._round}")
        return time.perf_counter() - began

    def _take(self) -> None:
        if self._replica.device.type != "cpu":
            self._replica.flat.copy_(self._params[0])

    def finish(self) -> None:
        """Leave; but serve this worker's shards while others still take rounds."""
        board = self._board
        board.post(self._arrived[self._post.index], GONE)
        while any(board.words[word] != GONE for word in self._arrived):
            self._round += 1
            self._apply()  # not waiting for other shards: their servers may be gone for good

    def close(self) -> None:
        self._take()

    def hosted(self) -> list[Hosted]:
        rounds = self._board.words
        return [
            Hosted(
                server=index,
                holds=table.size * 4,
                applied=rounds[self._applied[index]],
                sent=table.size * 4 * self._post.workers * self._round,
                received=table.size * 4 * self._post.workers * self._round,
                update=self._update / len(self._own),
            )
            for index, table in self._own.items()
        ]
