"""`ps-async` and `ssp` over shared memory: whoever has a gradient is for that moment the server.

Each worker has a place of its own for the parameters. A push takes the shard, writes

    own place ← rule(current place, own gradient)

and makes its own place the current one. Nobody else writes a worker's place, so what it reads
stays as it is until its next push. The gradient is used where backward left it: an exchange costs
what a lone optimizer step costs. What becomes of a worker that dies in mid-push, the log knows.

With a bound, a worker that has taken n rounds begins the next only when the slowest has taken
n + 1 − bound, so that at no time one is more than `bound` rounds ahead of another.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from paceline.exchange.base import Among, Copied, Exchange, Gradient, Hosted, Outcome, Post
from paceline.exchange.buckets import Bucket, buckets
from paceline.exchange.joining import Grads, addresses
from paceline.exchange.layout import pushlog_words
from paceline.exchange.pushlog import PushLog
from paceline.exchange.putting_back import put_back, take
from paceline.exchange.replica import Replica
from paceline.exchange.seats import Seats
from paceline.exchange.traffic import with_shards
from paceline.server.descent import BEYOND_CACHE, descent
from paceline.server.rules import CHUNK, Layers, Part, damped, make_rule
from paceline.transport import slate
from paceline.transport.board import GONE, Board
from paceline.types import Traffic

View = tuple[Bucket, list[Tensor]]  # a bucket, and what the places seen so far have there


class SharedAsync(Exchange):
    """The board has: ready; a seat for the rounds of each worker; then what the log keeps."""

    def __init__(self, post: Post) -> None:
        assert post.board is not None
        assert post.params is not None
        self._post = post
        self._params = post.params
        assert post.journal is not None
        shards = len(post.shards)
        need = 1 + Seats.words(post.room) + pushlog_words(shards, post.room)
        self._board = Board(post.board, need, post.spin, post.slate)
        self._rounds = Seats(self._board, 1, post.workers, post.room)
        journal = post.journal.view(shards, 2, -1)
        self._log = PushLog(self._board, self._rounds.stop, shards, post.room, journal)
        self._seen = [0] * shards
        # Whether the next push may be known, to some shards or in part, from before this life.
        self._again = post.life > 0

    def start(self, replica: Replica) -> None:
        post = self._post
        self._replica = replica
        layers = Layers(replica.layers)
        # Of even and of odd versions; none where the rule keeps no state.
        self._states = post.state.view(2, -1, replica.size) if post.state is not None else None
        state = self._states[0] if self._states is not None else None
        self._rule = make_rule(post.rule, replica.size, post.hyper, state, layers)
        self._own = self._params[post.index]
        fuse = not self._rule.layerwise  # such a rule has to see each layer by itself
        self._views: list[list[View]] = [
            [(bucket, []) for bucket in buckets(replica, a, b, fuse=fuse)] for a, b in post.shards
        ]
        # The same for compiled loops, by bytes from where a place begins.
        self._lying = [[bucket.lying() for bucket, _ in views] for views in self._views]
        self._first, self._stride = self._params.data_ptr(), 4 * self._params.stride(0)
        self._places = 0  # that there are views of
        self._see(max(post.workers, post.index + 1))
        self._descent = descent(post.kernels, self._rule, min(CHUNK, replica.size))
        if post.first and not self._board.words[0]:
            self._own.copy_(replica.flat)
            self._board.post(0, 1)
        self._board.wait(0, 1, "the first parameters", peer=post.beginner)
        self._enter()
        self._pull()
        self.taken = self._log.pushes(post.index)
        if replica.on_host:
            replica.bind(self._own)

    def _see(self, places: int) -> None:
        """Have views of so many workers' places. They are made once, of those that are there."""
        for views in self._views:
            for bucket, parts in views:
                parts += [place[bucket.at] for place in self._params[self._places : places]]
        self._places = places

    def _enter(self) -> None:
        """Count this worker's rounds from where they were, or from where the slowest is."""
        words, mine = self._board.words, self._rounds[self._post.index]
        if words[mine] == GONE:
            others = [words[word] for word in self._rounds.there() if words[word] != GONE]
            self._board.post(mine, min(others, default=0))
        self._round = words[mine]

    @property
    def updates(self) -> int:
        return max(self._seen)

    def step(self, gradient: Gradient, meanwhile: Callable[[], float]) -> Outcome:
        began = time.monotonic()
        grads = [parameter.grad for parameter in self._replica.parameters]
        at = addresses(grads) if self._descent is not None else None
        asked = began if at is None else time.monotonic()
        waited = updated = 0.0
        staleness = 0
        # Each begins at another shard, so that two pushes at once rarely want the same one.
        count = len(self._post.shards)
        for turn in range(count):
            shard = (turn + self._post.index) % count
            with self._board.owning(shard):
                owned = time.monotonic()
                staleness = max(staleness, self._push(shard, grads, at, gradient.lr))
            waited, asked = waited + owned - asked, time.monotonic()
            updated += asked - owned
        pushed = here = asked
        self._replica.clear()
        self.taken += 1
        elsewhere = 0.0
        if self._post.bound:
            elsewhere = self._stay_close(meanwhile)
            here = time.monotonic()
        if not self._replica.on_host:
            self._replica.flat.copy_(self._own)
        self.sent += self._replica.size * 4
        self.received += self._replica.size * 4
        ended = time.monotonic()
        return Outcome(
            began=began,
            ended=ended,
            push=pushed - began - waited - updated,
            pull=ended - here,
            wait=waited + here - pushed - elsewhere,
            update=updated,
            version=max(self._seen),
            staleness=staleness,
            stop=gradient.stopping or gradient.parting,
            keep=gradient.keeping,
        )

    def _push(self, shard: int, grads: Grads, at: list[int] | None, lr: float) -> int:
        """Apply this worker's gradient to a shard it owns now; how stale the gradient was.

        `at` is where `grads` lie, if there is one of each and compiled loops apply them.
        """
        log, mine = self._log, self._post.index
        version, current = log.settle(shard, self._restore)
        if current >= self._places:
            self._see(current + 1)
        staleness = version - self._seen[shard]
        had = 0
        if self._again:
            if log.has(mine, shard, self.taken + 1):  # of a former life, which died over another
                self._copy(shard, current)
                return staleness
            had = log.partial(mine, shard)
        if self._post.damp_stale:
            lr = damped(lr, staleness)
        if self._states is not None:
            a, b = self._post.shards[shard]
            old_state, new_state = self._states[version % 2], self._states[1 - version % 2]
            new_state[:, a:b].copy_(old_state[:, a:b])
            self._rule.state = new_state
        if at is not None and not had:
            self._descend(shard, version, current, at, lr)
        else:
            with torch.no_grad():
                parts = self._parts(shard, current, had, grads)
                before = partial(self._journal, shard, version) if current == mine else None
                self._rule.update(parts, lr, version + 1, before)
        self._seen[shard] = version + 1
        log.commit(shard, mine, version + 1)
        return staleness

    def _descend(self, shard: int, version: int, current: int, at: list[int], lr: float) -> None:
        """The same by compiled loops."""
        by, mine = self._descent, self._post.index
        assert by is not None
        own, old = self._first + mine * self._stride, self._first + current * self._stride
        loop = by.stream if self._replica.size >= BEYOND_CACHE and current != mine else by.step
        for chunk, (pieces, (_, places)) in enumerate(
            zip(self._lying[shard], self._views[shard], strict=True)
        ):
            if current == mine:
                self._log.change(shard, version, chunk, places[mine])
            for parameter, offset, inside, count in pieces:
                loop(own + offset, old + offset, at[parameter] + inside, lr, count)

    def _parts(self, shard: int, current: int, had: int, grads: Grads) -> list[Part]:
        """What the rule has to do; chunks before `had` have this push already."""
        mine, parts = self._post.index, []
        for chunk, (bucket, places) in enumerate(self._views[shard]):
            new, old = places[mine], places[current]
            whole = bucket.gradient(grads) if chunk >= had else None
            if whole is not None:
                parts.append((new, old, whole, bucket.at))
                continue
            if current != mine:
                new.copy_(old)
            if chunk >= had:  # a layer that this batch did not use stays as it is
                for piece, grad in bucket.apart(grads):
                    own = self._own[piece.at]
                    parts.append((own, own, grad, piece.at))
        return parts

    def _journal(self, shard: int, version: int, part: Part) -> None:
        """The chunk that has this part is about to be changed."""
        views = self._views[shard]
        chunk = bisect_right(views, part[3].start, key=lambda view: view[0].at.start) - 1
        self._log.change(shard, version, chunk, views[chunk][1][self._post.index])

    def _restore(self, shard: int, worker: int, chunk: int) -> Tensor:
        """A worker died over a chunk of its own; what it had changed before stands."""
        if worker >= self._places:
            self._see(worker + 1)
        bucket, places = self._views[shard][chunk]
        if self._states is not None:
            stands = self._log.standing(shard)[0] % 2
            changed = slice(self._post.shards[shard][0], bucket.at.start)
            self._states[stands][:, changed].copy_(self._states[1 - stands][:, changed])
        return places[worker]

    def _stay_close(self, meanwhile: Callable[[], float]) -> float:
        """Wait until the slowest is near; the seconds that something else took meanwhile."""
        board, words = self._board, self._board.words
        self._round += 1
        board.post(self._rounds[self._post.index], self._round)
        least = self._round + 1 - self._post.bound
        if all(words[word] >= least for word in self._rounds.there()):
            return 0.0
        elsewhere = meanwhile()
        for worker, word in enumerate(self._rounds.there()):
            what = f"worker-{worker} in round {least}"
            board.wait(word, least, what, peer=slate.worker(worker))
        self._pull()  # what the others pushed meanwhile
        return elsewhere

    def _pull(self) -> None:
        """The current version of every shard into the own place."""
        for shard in range(len(self._post.shards)):
            with self._board.owning(shard):
                self._copy(shard, self._log.settle(shard, self._restore)[1])

    def _copy(self, shard: int, place: int) -> None:
        a, b = self._post.shards[shard]
        if place != self._post.index:
            self._own[a:b].copy_(self._params[place][a:b])
        self._seen[shard] = self._log.standing(shard)[0]

    def finish(self) -> None:
        self._board.post(self._rounds[self._post.index], GONE)

    def close(self) -> None:
        self._pull()
        if not self._replica.on_host:
            self._replica.flat.copy_(self._own)

    def keep(self, among: Among, copied: Copied) -> dict[str, Tensor]:
        """Of its part of the shards, each as it stands, with the names of the pushes in it: they
        need not be of one moment, and the others push meanwhile."""
        kept: dict[str, Tensor] = {}
        for shard in among.mine(len(self._post.shards)):
            a, b = self._post.shards[shard]
            with self._board.owning(shard):
                version, place = self._log.settle(shard, self._restore)
                kept[f"log.{shard}"] = torch.tensor(
                    self._log.keep(shard, len(self._rounds.there()))
                )
                name, params = f"parameters.{shard}", self._params[place]
                kept[name] = copied(name, params[a:b])
                if self._states is not None:
                    name, state = f"state.{shard}", self._states[version % 2]
                    kept[name] = copied(name, state[:, a:b])
        return kept

    def restore(self, kept: dict[str, Tensor]) -> None:
        """The shards counted here, in this worker's own place; then go on from everybody's."""
        for shard in self._post.hosts:
            a, b = self._post.shards[shard]
            log = kept[f"log.{shard}"].tolist()
            take(kept[f"parameters.{shard}"], self._own[a:b])
            if self._states is not None:
                take(kept[f"state.{shard}"], self._states[log[0] % 2][:, a:b])
            self._log.restore(shard, self._post.index, log)
        put_back(self._board, len(self._post.crew))
        self._pull()
        if not self._replica.on_host:
            self._replica.flat.copy_(self._own)
        self.taken = self._log.pushes(self._post.index)
        self._again = True

    def traffic(self) -> tuple[Traffic, ...]:
        return with_shards(self._post.shards, self.sent)

    def hosted(self) -> list[Hosted]:
        found = []
        for shard in self._post.hosts:
            a, b = self._post.shards[shard]
            version, size = self._log.standing(shard)[0], (b - a) * 4
            found.append(
                Hosted(
                    server=shard,
                    holds=size,
                    applied=version,
                    sent=version * size,
                    received=version * size,
                )
            )
        return found
