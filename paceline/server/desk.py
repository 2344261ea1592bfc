"""What a server does with a frame: find its block's window, and where its payload goes.

A length that does not fit is refused before a byte of it is read, so a frame can make a server
take no memory that it has not got already.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor

from paceline.errors import WireError
from paceline.server.gate import Gate
from paceline.server.kept import Kept, Marks
from paceline.server.rules import Rule
from paceline.server.shards import BLOCK, blocks
from paceline.server.table import Table
from paceline.server.tally import Tally
from paceline.server.window import Window
from paceline.transport.frames import Frame, Kind
from paceline.transport.memory import FLOAT_BYTES, raw

if TYPE_CHECKING:
    from paceline.server.connection import Connection


SPARE = 1 << 20  # bytes


class Decoder(Protocol):
    """How gradients come that were made smaller; it refuses what it cannot read."""

    def room(self, count: int) -> int:
        """The most bytes that many floats can take."""
        ...

    def decode(self, data: Tensor, out: Tensor) -> None: ...


class Desk:
    """Answers frames for one shard. Knows nothing of sockets beyond `Connection.send`.

    Gradients that wait for others have a row a worker, as long as the shard; those used at once
    have room for one block a worker. A push that has come before is read to where nobody looks.
    """

    def __init__(
        self,
        size: int,
        workers: int,
        gate: Callable[[], Gate],
        rule: Callable[[int], Rule],
        tally: Tally,
        *,
        block: int = BLOCK,
        codec: Decoder | None = None,
        damp: bool = False,
        kept: Kept | None = None,
    ) -> None:
        """`kept` is what a former server left, or where this one's successor will look."""
        self._workers = workers
        spans = blocks(size, block)
        gates = [gate() for _ in spans]
        holds = gates[0].holds
        params = kept.params if kept is not None else torch.empty(1, size)
        grads = torch.empty(workers, size if holds else min(block, size))
        self.windows = []
        self._rows: list[Tensor] = []  # a block's gradients, a worker each
        self._inbox: list[list[memoryview]] = []  # where they are received
        self._codec = codec
        room = codec.room(min(block, size)) if codec is not None else 0
        self._coded = torch.empty(workers, room, dtype=torch.uint8)
        self._unread = raw(
            torch.empty(max(room, min(block, size) * FLOAT_BYTES), dtype=torch.uint8)
        )
        for index, (span, own) in enumerate(zip(spans, gates, strict=True)):
            rows = grads[:, span] if holds else grads[:, : span.stop - span.start]
            states = kept.state[:, :, span] if kept is not None and kept.state.shape[1] else None
            table = Table(params[:, span], rows, rule(span.stop - span.start), states=states)
            marks = Marks(kept.words, index, len(spans), workers) if kept is not None else None
            self.windows.append(Window(index, table, own, tally, damp, marks))
            self._rows.append(rows)
            self._inbox.append([raw(row) for row in (self._coded if codec else rows)])
        self._params = params
        self._lives = [0] * workers  # how often each worker was started again
        self._lost = [False] * workers  # and has not come since
        self._lines: dict[int, Connection] = {}  # who pushes for a worker
        # A worker is owed each block once; what others may change meanwhile is kept as a copy.
        self._most_owed = SPARE + 4 * size * FLOAT_BYTES

    @property
    def params(self) -> Tensor:
        """The first place's, which is the only one unless they are kept."""
        return self._params[0]

    @property
    def applied(self) -> int:
        """Updates so far."""
        return self.windows[0].table.version

    def target(self, connection: Connection, frame: Frame) -> memoryview | None:
        """Where this frame's payload goes."""
        if frame.sender >= self._workers:
            raise WireError(f"a frame names worker {frame.sender}, which this run does not have.")
        if frame.block >= len(self.windows):
            raise WireError(f"a frame names block {frame.block}, which this server does not have.")
        window = self.windows[frame.block]
        carries = frame.kind == Kind.INIT or (frame.kind == Kind.PUSH and frame.weight > 0)
        coded = self._codec is not None and frame.kind == Kind.PUSH and carries
        if not self._fits(frame.length, window.table.size if carries else 0, coded):
            raise WireError(f"a frame of kind {frame.kind} has {frame.length} bytes of payload.")
        if frame.kind == Kind.PUSH:
            window.check(frame)
            self._claim(connection, frame.sender)
        if not carries:
            return None
        if window.ready if frame.kind == Kind.INIT else window.known(frame):
            return self._unread[: frame.length]
        if frame.kind == Kind.INIT:
            return raw(self._rows[frame.block][frame.sender])
        return self._inbox[frame.block][frame.sender][: frame.length]

    def _fits(self, length: int, count: int, coded: bool) -> bool:
        if coded and self._codec is not None:
            return 0 < length <= self._codec.room(count)
        return length == count * FLOAT_BYTES

    def handle(self, connection: Connection, frame: Frame) -> None:
        """Act on a frame whose payload is where it was to go."""
        if connection.owed > self._most_owed:
            raise WireError("this peer asks for more than it takes.")
        match frame.kind:
            case Kind.INIT:
                self.windows[frame.block].init(self._rows[frame.block][frame.sender])
            case Kind.PULL:
                self._pull(connection, frame)
            case Kind.PUSH:
                window = self.windows[frame.block]
                if self._codec is not None and frame.weight > 0 and not window.known(frame):
                    data = self._coded[frame.sender, : frame.length]
                    self._codec.decode(data, self._rows[frame.block][frame.sender])
                window.push(connection, frame)
            case Kind.LEAVE:
                self.leave(frame.sender)
            case _:
                raise WireError(f"a server does not take frames of kind {frame.kind}.")

    def _pull(self, connection: Connection, frame: Frame) -> None:
        """Answer with everything; a worker that was lost counts again."""
        worker, life = frame.sender, frame.sequence
        if life != self._lives[worker]:
            raise WireError(f"worker {worker} is not known to be in its life number {life}.")
        joins, self._lost[worker] = self._lost[worker], False
        for window in self.windows:
            if joins:
                window.join(connection, frame)
            else:
                window.pull(connection, frame)

    def _claim(self, connection: Connection, worker: int) -> None:
        """Only one connection pushes for a worker: it has one place for gradients."""
        holder = self._lines.setdefault(worker, connection)
        if holder.closed:
            self._lines[worker] = connection
        elif holder is not connection:
            raise WireError(f"worker {worker} has another connection.")

    def meet(self, lives: Sequence[int], left: Sequence[int]) -> None:
        """How things stand when a server takes over: each worker's life, and who has left."""
        self._lives = list(lives)
        for worker in left:
            self.leave(worker)

    def leave(self, worker: int) -> None:
        """The worker has no more pushes. Said twice, it is as if it were said once."""
        for window in self.windows:
            window.leave(worker)

    def lose(self, worker: int, life: int) -> None:
        """This life of a worker is over, by the supervisor's word: nobody waits for it."""
        self._lives[worker], self._lost[worker] = life + 1, True
        if (line := self._lines.pop(worker, None)) is not None:
            line.close()
        self.leave(worker)
