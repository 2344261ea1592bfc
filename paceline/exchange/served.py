"""`ps-sync` and `ps-async`: push the gradient to the servers, take the parameters they answer.

Over shared memory the gradient is written where the servers read it and the parameters are read
where the servers write them: frames only say that it is so. Over TCP the same frames carry them.
"""

from __future__ import annotations

import time

from torch import Tensor

from paceline.exchange.base import Gradient, Outcome, Post
from paceline.exchange.replica import Replica
from paceline.transport.frames import Frame, Kind
from paceline.transport.sockets import Line


class Served:
    def __init__(self, post: Post) -> None:
        self._post = post
        self._sequence = 0
        self._version = 0
        self._lines: list[Line] = []
        self._moved_in = 0  # bytes handed over in shared memory, which no line counts
        self._moved_out = 0

    @property
    def sent(self) -> int:
        return self._moved_out + sum(line.sent for line in self._lines)

    @property
    def received(self) -> int:
        return self._moved_in + sum(line.received for line in self._lines)

    def start(self, replica: Replica) -> None:
        post = self._post
        self._replica = replica
        self._shared = post.params is not None
        self._bind(replica)
        nbytes = replica.size * 4
        for role, address, start, stop in post.servers:
            line = Line.connect(address, role, post.secret)
            self._lines.append(line)
            if post.index == 0:
                part = None if self._shared else raw(self._flat[start:stop])
                line.send(Frame(Kind.INIT, 0, length=len(part or b"")), part)
        for line in self._lines:
            line.send(Frame(Kind.PULL, post.index))
        self._answers()
        self._moved_in = nbytes if self._shared else 0
        if replica.flat is not self._flat:
            replica.flat.copy_(self._flat)

    def _bind(self, replica: Replica) -> None:
        """Decide where this worker's gradients and parameters lie on the host's side."""
        post = self._post
        if post.params is not None and post.grads is not None:
            self._flat = post.params[post.place]
            self._grad = post.grads[post.index]
        else:
            self._flat = replica.flat.cpu()
            self._grad = self._flat.new_empty(replica.size)
        if post.index == 0:
            self._flat.copy_(replica.flat)
        if replica.device.type == "cpu":
            replica.bind(self._flat)

    def step(self, gradient: Gradient) -> Outcome:
        began = time.perf_counter()
        self._sequence += 1
        empty = gradient.weight == 0
        if not empty:
            self._replica.gather(self._grad)
        push = Frame(
            Kind.PUSH,
            self._post.index,
            self._sequence,
            self._version,
            float(gradient.weight),
            gradient.lr,
        )
        for line, (_, _, start, stop) in zip(self._lines, self._post.servers, strict=True):
            if self._shared or empty:
                line.send(push)
            else:
                part = raw(self._grad[start:stop])
                line.send(push._replace(length=len(part)), part)
        pushed = time.perf_counter()
        waited, staleness = self._answers()
        if self._shared:
            self._moved_out += self._replica.size * 4
            self._moved_in += self._replica.size * 4
        answered = time.perf_counter()
        if self._replica.flat is not self._flat:
            self._replica.flat.copy_(self._flat)
        done = time.perf_counter()
        return Outcome(
            exchange=(pushed - began) + (answered - pushed - waited),
            wait=waited,
            update=done - answered,
            version=self._version,
            staleness=staleness,
            stop=gradient.stopping,
        )

    def _answers(self) -> tuple[float, int]:
        """Take every server's STATE: the seconds waited for it, and the largest staleness."""
        waited = 0.0
        staleness = 0
        for line, (_, _, start, stop) in zip(self._lines, self._post.servers, strict=True):
            began = time.perf_counter()
            state = line.receive()
            waited += time.perf_counter() - began
            if state.length:
                line.fill(raw(self._flat[start:stop]))
            staleness = max(staleness, state.staleness)
            self._version = state.version
        return waited, staleness

    def finish(self) -> None:
        for line in self._lines:
            line.send(Frame(Kind.LEAVE, self._post.index))

    def close(self) -> None:
        for line in self._lines:
            line.send(Frame(Kind.PULL, self._post.index))
        self._answers()
        if self._replica.flat is not self._flat:
            self._replica.flat.copy_(self._flat)
        for line in self._lines:
            line.close()


def raw(tensor: Tensor) -> memoryview:
    """A tensor's own bytes."""
    return memoryview(tensor.detach().numpy()).cast("B")
