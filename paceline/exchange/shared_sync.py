"""`ps-sync` over shared memory: no server process, each worker serves a shard of its own.

    gather gradients ─► arrive ─► all arrived? ─► apply own shards ─► applied ─► all applied?

In a synchronous round everybody waits for everybody anyway, so a server of its own would only take
cycles from the workers and add two hand-overs to the round. Gradients are read where backward's
copy left them and parameters where the shard's server wrote them: nothing is sent.

A shard whose server is gone is served by whoever comes first of those who wait for it. All it takes
is in shared memory, so a worker that comes back needs nothing from the others.

Shards cut layers. Before a layer-wise rule is applied, the servers leave the norms of what they
have of each layer on the board, and wait for one another once more.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

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
from paceline.exchange.journal import Journal
from paceline.exchange.layout import READY, ROLL, SyncWords
from paceline.exchange.muster import Muster, Turnout
from paceline.exchange.putting_back import put_back, take
from paceline.exchange.replica import Piece, Replica
from paceline.exchange.shared_shard import Pushes, SharedShard
from paceline.exchange.traffic import with_shards
from paceline.server.catalog import LAYERWISE, STATES
from paceline.server.descent import pour
from paceline.server.rules import Layers, make_rule
from paceline.server.table import Table
from paceline.transport.board import Board
from paceline.transport.slate import worker
from paceline.types import Traffic

LARGE = 1 << 20  # parameters from which on a copy less is worth more than a few calls more


class SharedSync(Exchange):
    """The board has, a word each: ready; then the muster; then what `SyncWords` says.

    All end after the same round, and keep a checkpoint after the same round: who was asked to says
    so with its gradient.
    """

    def __init__(self, post: Post) -> None:
        assert post.board is not None
        assert post.params is not None
        assert post.grads is not None
        self._post = post
        self._fd = post.board
        self._params = post.params
        self._grads = post.grads
        self._grad = post.grads[post.index]
        self._layerwise = post.rule in LAYERWISE
        self._dealing = Dealing(post.index, post.crew, post.whole, post.balance, post.room)
        self._round = 0
        self._last: tuple[int, Turnout] | None = None  # round that was closed
        self._update = 0.0
        self._lent = False  # whether this life's gradient is read where backward left it

    def start(self, replica: Replica) -> None:
        post = self._post
        self._replica = replica
        layers = len(replica.layers) if self._layerwise else 0
        self._words = words = SyncWords.of(post.room, len(post.shards), layers)
        self._board = board = Board(self._fd, words.total, post.spin, post.slate)
        self._muster = Muster(board, ROLL, post.workers, post.room)
        self._squares = None  # [shards, 2, layers]
        if self._layerwise:
            norms = board.doubles(words.norms.start, len(words.norms))
            self._squares = norms.view(len(post.shards), 2, layers)
        self._journal = None
        if post.journal is not None and post.returns:
            rows = post.journal.view(len(post.shards), 2, 1 + STATES[post.rule], -1)
            self._journal = Journal(board.words, words.begun, rows)
        self._in_place = replica.from_backward and replica.size >= LARGE
        self._kept: dict[int, list[Piece]] = {}  # of the gradient, for the shards served here
        self._given: list[tuple[Piece, Tensor]] = []  # and for the others', with where it goes
        self._shards: dict[int, SharedShard] = {}  # as far as they were served here
        for index, (a, b) in enumerate(post.shards):
            if self._server(index) == post.index:
                self._kept[index] = replica.pieces(a, b) if self._in_place else []
                self._shard(index)
            elif self._in_place:
                self._given += [(p, self._grad[p.at]) for p in replica.pieces(a, b, LARGE)]
        if post.first and not board.words[READY]:
            self._params[0].copy_(replica.flat)
            board.post(READY, 1)
        board.wait(READY, 1, "the first parameters", peer=post.beginner)
        if post.life:
            self._come_back()
        self._take()
        if replica.on_host:
            replica.bind(self._params[0])

    def _come_back(self) -> None:
        """Go on after the round in which the others let this worker in."""
        muster = self._muster
        joined = muster.ask(self._post.index)
        if joined is None:
            self.over = True
            joined = max(self._board.words[word] for word in self._words.applied)
        else:
            muster.wait(joined)
            turnout = muster.turnout(joined)
            self._last = joined, turnout
            self._round = joined
            self._serve(turnout, lambda: 0.0, own=())
            if self._post.balance:  # if nobody is left, there is nobody to agree with
                muster.await_given(joined)
            self.over, self.share = turnout.stop, self._dealing.join(turnout, muster.costs())
        self._round = self.round = self.taken = joined

    def _server(self, shard: int) -> int:
        """The worker that serves a shard, if it is there."""
        return self._post.host(shard)

    def _shard(self, index: int) -> SharedShard:
        if index not in self._shards:
            post, (a, b) = self._post, self._post.shards[index]
            state = post.state[:, a:b] if post.state is not None else None
            layers = Layers(self._replica.layers, a, self._squares, index)
            rule = make_rule(post.rule, b - a, post.hyper, state, layers)
            # The same chunks for all who ever serve it.
            pieces = self._replica.pieces(a, b) if self._in_place else ()
            chunks = [slice(p.at.start - a, p.at.stop - a) for p in pieces] or None
            table = Table(
                self._params[:, a:b], self._grads[:, a:b], rule, chunks, kernels=post.kernels
            )
            self._shards[index] = SharedShard(index, self._board, self._words, table, self._journal)
        return self._shards[index]

    def step(self, gradient: Gradient, meanwhile: Callable[[], float]) -> Outcome:
        began = time.monotonic()
        muster = self._muster
        self._round += 1
        now = self._round
        seconds = gradient.spent()
        muster.begin(now)
        if gradient.weight and self._in_place:
            self._give()
        elif gradient.weight:
            self._replica.gather(self._grad)
        muster.arrive(
            self._post.index,
            now,
            gradient.weight,
            gradient.lr,
            seconds=seconds,
            stopping=gradient.stopping,
            keeping=gradient.keeping,
            leaving=gradient.parting,
        )
        # Whoever comes last applies at once; whoever comes early has time for something else.
        pushed = time.monotonic()
        elsewhere = 0.0 if muster.complete(now) else meanwhile()
        asked = time.monotonic()
        muster.wait(now)
        waited = time.monotonic() - asked
        turnout = muster.turnout(now)
        self._last = now, turnout
        more, updated, other = self._serve(turnout, meanwhile, own=tuple(self._kept))
        waited, elsewhere = waited + more, elsewhere + other
        self._take()
        share = self._dealing.after(turnout)
        if turnout.invited and self._post.balance:  # all write the same
            muster.give(now, self._dealing.costs())
        self.sent += self._replica.size * 4
        self.received += self._replica.size * 4
        ended = time.monotonic()
        return Outcome(
            began=began,
            ended=ended,
            push=pushed - began,
            pull=ended - pushed - waited - updated - elsewhere,
            wait=waited,
            update=updated,
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

    def _give(self) -> None:
        """Copy only what others will apply; what is applied here is read where backward left it."""
        grads = [
            torch.zeros(p.numel()) if grad is None else grad
            for p, grad in zip(
                self._replica.parameters, self._replica.flat_gradients(), strict=True
            )
        ]
        for piece, place in self._given:
            part, kernels = piece.of(grads[piece.parameter]), self._post.kernels
            if kernels is None:
                place.copy_(part)
            else:
                pour(kernels, place.data_ptr(), part.data_ptr(), len(place))
        for index, pieces in self._kept.items():
            lent = [piece.of(grads[piece.parameter]) for piece in pieces]
            self._shards[index].table.lend(self._post.index, lent)
        self._lent = True

    def _let_go(self) -> None:
        """The gradient was used: backward may have its memory again."""
        self._replica.clear()
        for index in self._kept:
            self._shards[index].table.lend(self._post.index, [])
        self._lent = False

    def _serve(
        self, turnout: Turnout, meanwhile: Callable[[], float], own: tuple[int, ...]
    ) -> tuple[float, float, float]:
        """Apply this round to `own` shards, and wait for the others; seconds waited, spent on
        updates, and spent on something else meanwhile."""
        now, words, clock = self._round, self._words, time.perf_counter

        def measure(index: int) -> None:
            self._shard(index).measure(now, self._pushes(turnout, index))

        def apply(index: int) -> None:
            self._shard(index).apply(now, self._pushes(turnout, index), turnout.rate)

        waited, began = 0.0, clock()
        if self._layerwise:
            for index in own:
                measure(index)
            waited = self._await(words.measured, "to measure", measure)
        for index in own:
            apply(index)
        updated = clock() - began - waited
        self._update += updated
        if self._lent:
            self._let_go()
        elsewhere = meanwhile()
        return waited + self._await(words.applied, "in", apply), updated, elsewhere

    def _pushes(self, turnout: Turnout, shard: int) -> Pushes:
        """For a shard: what its server had of its own gradient for it may be gone with it."""
        server = self._server(shard)
        if not self._in_place or (server == self._post.index and self._lent):
            return turnout.pushes
        return [push for push in turnout.pushes if push[0] != server]

    def _await(self, words: range, what: str, act: Callable[[int], None]) -> float:
        """Wait until every shard is that far, and act for those whose server is gone: seconds."""
        began, now = time.monotonic(), self._round
        for index, word in enumerate(words):
            missing, peer = partial(self._missing, index), worker(self._server(index))
            awaited = f"server-{index} {what} round {now}"
            while not self._board.wait(word, now, awaited, missing, peer):
                act(index)
        return time.monotonic() - began

    def _missing(self, shard: int) -> bool:
        """Whether the shard's server is not there in this round."""
        return not self._muster.serves(self._server(shard), self._round)

    def _take(self) -> None:
        if not self._replica.on_host:
            self._replica.flat.copy_(self._params[0])

    def finish(self) -> None:
        """Leave: those who still take rounds serve this worker's shards themselves."""
        self._muster.finish(self._post.index)

    def leave(self) -> None:
        """As one that has finished; but those who come later are not too late."""
        self._muster.leave(self._post.index)

    def close(self) -> None:
        self._take()

    def keep(self, among: Among, copied: Copied) -> dict[str, Tensor]:
        """Of its part of the shards. Nobody changes any before this worker's next arrival."""
        kept = {"round": torch.tensor(self._round)}
        for index in among.mine(len(self._post.shards)):
            params, state = self._shard(index).table.held
            for name, tensor in ((f"parameters.{index}", params), (f"state.{index}", state)):
                kept[name] = copied(name, tensor)
        return kept

    def restore(self, kept: dict[str, Tensor]) -> None:
        """The shards served here; nobody goes on before all are as they were."""
        self._round = int(kept["round"])
        for index in self._kept:
            table = self._shard(index).table
            take(kept[f"parameters.{index}"], table.held[0])
            take(kept[f"state.{index}"], table.held[1])
            self._board.words[self._words.applied[index]] = self._round
        put_back(self._board, len(self._post.crew))
        self._take()

    def traffic(self) -> tuple[Traffic, ...]:
        return with_shards(self._post.shards, self.sent)

    def hosted(self) -> list[Hosted]:
        rounds = self._board.words
        return [
            Hosted(
                server=index,
                holds=(b - a) * 4,
                applied=rounds[self._words.applied[index]],
                sent=(b - a) * 4 * self._post.workers * self._round,
                received=(b - a) * 4 * self._post.workers * self._round,
                update=self._update / len(self._kept),
            )
            for index, (a, b) in enumerate(self._post.shards)
            if index in self._kept
        ]
