"""`ps-sync` and `ps-async` over TCP: push the gradient to the servers, take their parameters."""

from __future__ import annotations

import time
from collections.abc import Callable

from paceline.exchange.base import Gradient, Hosted, Outcome, Post
from paceline.exchange.replica import Replica
from paceline.transport.frames import Frame, Kind
from paceline.transport.memory import raw
from paceline.transport.sockets import Line


class Served:
    """Gradients leave from one flat buffer, parameters arrive straight in the replica's own."""

    summed = False

    def __init__(self, post: Post) -> None:
        self._post = post
        self._sequence = 0
        self._lines: list[Line] = []
        self._versions = [0] * len(post.addresses)  # servers count alone, at their own pace

    @property
    def sent(self) -> int:
        return sum(line.sent for line in self._lines)

    @property
    def received(self) -> int:
        return sum(line.received for line in self._lines)

    def start(self, replica: Replica) -> None:
        self._replica = replica
        self._flat = replica.flat.cpu()  # the replica's own memory, unless that is on a GPU
        self._grad = self._flat.new_empty(replica.size)
        for index, address in enumerate(self._post.addresses):
            line = Line.connect(address, f"server-{index}", self._post.secret)
            self._lines.append(line)
            if self._post.index == 0:
                part = raw(self._flat[slice(*self._post.shards[index])])
                line.send(Frame(Kind.INIT, 0, length=len(part)), part)
        self._pull()

    def step(self, gradient: Gradient, meanwhile: Callable[[], float]) -> Outcome:
        began = time.perf_counter()
        self._sequence += 1
        if gradient.weight:
            self._replica.gather(self._grad)
        for line, shard, version in zip(
            self._lines, self._post.shards, self._versions, strict=True
        ):
            part = raw(self._grad[slice(*shard)]) if gradient.weight else None
            push = Frame(
                Kind.PUSH,
                self._post.index,
                self._sequence,
                version,
                float(gradient.weight),
                gradient.lr,
                length=len(part) if part else 0,
            )
            line.send(push, part)
        elsewhere = meanwhile()
        waited, staleness = self._answers()
        answered = time.perf_counter()
        self._take()
        return Outcome(
            exchange=answered - began - waited - elsewhere,
            wait=waited,
            update=time.perf_counter() - answered,
            version=max(self._versions),
            staleness=staleness,
            stop=gradient.stopping,
        )

    def _answers(self) -> tuple[float, int]:
        """Take every server's STATE: the seconds waited for it, and the largest staleness."""
        waited = 0.0
        staleness = 0
        for index, (line, shard) in enumerate(zip(self._lines, self._post.shards, strict=True)):
            began = time.perf_counter()
            state = line.receive()
            waited += time.perf_counter() - began
            line.fill(raw(self._flat[slice(*shard)]), state.length)
            staleness = max(staleness, state.staleness)
            self._versions[index] = state.version
        return waited, staleness

    def _pull(self) -> None:
        for line in self._lines:
            line.send(Frame(Kind.PULL, self._post.index))
        self._answers()
        self._take()

    def _take(self) -> None:
        if self._flat is not self._replica.flat:
            self._replica.flat.copy_(self._flat)

    def finish(self) -> None:
        for line in self._lines:
            line.send(Frame(Kind.LEAVE, self._post.index))

    def close(self) -> None:
        self._pull()
        for line in self._lines:
            line.close()

    def hosted(self) -> list[Hosted]:
        return []
