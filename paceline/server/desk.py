"""What a server does with a frame: find its block's window, and where its payload goes.

A length that does not fit is refused before a byte of it is read, so a frame can make a server
take no memory that it has not got already.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor

from paceline.errors import WireError
from paceline.server.follower import Follower, Tell
from paceline.server.gate import Gate
from paceline.server.kept import Kept, Marks
from paceline.server.lines import STANDBY, Lines
from paceline.server.part import Copying
from paceline.server.rules import Rule
from paceline.server.shards import BLOCK, blocks
from paceline.server.table import Table
from paceline.server.tally import Tally
from paceline.server.window import Window
from paceline.transport.frames import Frame, Kind
from paceline.transport.memory import FLOAT_BYTES, raw

if TYPE_CHECKING:
    from paceline.server.connection import Connection
    from paceline.server.rowstore import RowStore


SPARE = 1 << 20  # bytes
ABOUT_ROWS = (Kind.ROWS, Kind.FETCH, Kind.FILL, Kind.USED)
LEFT, ASKED, NOWHERE = "left", "asked", "nowhere"  # what is received of rows


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
        tell: Tell | None = None,
        lease: float = 0.0,
        limits: Mapping[int, float] = MappingProxyType({}),
        room: int = 0,
        spans: Sequence[slice] | None = None,
        tables: RowStore | None = None,
    ) -> None:
        """`kept` is what a former server left, or where this one's successor will look. With `tell`
        a standby may follow, and the supervisor is told how far it is. There may come more than
        these workers, up to `room`. The blocks are `spans`, or of `block` floats each. `tables` is
        its part of sparse tables, which change with the first block."""
        room = max(room, workers)
        self._room = room
        self._watch = tally.watch
        spans = blocks(size, block) if spans is None else spans
        block = max(span.stop - span.start for span in spans)
        gates = [gate() for _ in spans]
        self._follower = Follower(len(spans), tell) if tell is not None else None
        # A gradient stays until others have come, or a standby has it.
        holds = gates[0].holds or tell is not None
        params = kept.params if kept is not None else torch.empty(1, size)
        self._width = size if holds else min(block, size)
        self.windows = []
        self._spans = spans if holds else [slice(0, s.stop - s.start) for s in spans]
        self._rows: list[list[Tensor]] = []  # a block's gradients, a worker each
        self._inbox: list[list[memoryview]] = []  # where they are received
        self._codec = codec
        self._most = codec.room(min(block, size)) if codec is not None else 0  # bytes of a block
        self._coded: list[Tensor] = []
        self._unread = raw(
            torch.empty(max(self._most, min(block, size) * FLOAT_BYTES), dtype=torch.uint8)
        )
        for index, (span, own) in enumerate(zip(spans, gates, strict=True)):
            rows: list[Tensor] = []
            states = kept.state[:, :, span] if kept is not None and kept.state.shape[1] else None
            table = Table(params[:, span], rows, rule(span.stop - span.start), states=states)
            marks = Marks(kept.words, index, len(spans), 0, room) if kept is not None else None
            also = tables if not index else None
            self.windows.append(
                Window(index, table, own, tally, damp, marks, self._follower, room, also)
            )
            self._rows.append(rows)
            self._inbox.append([])
        self._params = params
        self._tables = tables
        self._asking: dict[int, Connection] = {}  # who asks for rows
        self._lives: list[int] = []  # how often each worker was started again
        self._lost: list[bool] = []  # and has not come since
        self._seat(workers)
        self._missed: set[int] = set()  # nobody waits for them, and they have not come since
        self.returned: list[int] = []  # those that have
        self._lines = Lines(lease, limits)
        self.copying: Copying | None = None  # for the checkpoint that is being made
        # A worker is owed each block once; what others may change meanwhile is kept as a copy.
        self._most_owed = SPARE + 4 * size * FLOAT_BYTES

    def _seat(self, workers: int) -> range:
        """Have a place for the gradients of so many workers: those that are new."""
        new = range(len(self._lives), min(workers, self._room))
        for _ in new:
            whole = torch.empty(self._width)
            coded = torch.empty(self._most, dtype=torch.uint8)
            self._coded.append(coded)
            for window, span in zip(self.windows, self._spans, strict=True):
                row = whole[span]
                self._rows[window.index].append(row)
                self._inbox[window.index].append(raw(coded if self._codec else row))
                window.seat(raw(row))
            self._lives.append(0)
            self._lost.append(False)
        return new

    @property
    def params(self) -> Tensor:
        """The first place's, which is the only one unless they are kept."""
        return self._params[0]

    @property
    def applied(self) -> int:
        """Updates so far."""
        return self.windows[0].table.version

    @property
    def holds_back(self) -> bool:
        """Whether an answer waits for others, or for a standby."""
        return any(window.holds_back for window in self.windows)

    def awaited(self) -> tuple[int, list[int]]:
        """The round that waits, and for whom, as a slate names them; or nobody."""
        waiting = ((w.table.version + 1, peers) for w in self.windows if (peers := w.awaited()))
        return min(waiting, default=(0, []))

    def row(self, block: int, worker: int) -> Tensor:
        """Where a worker's gradient of a block lies."""
        return self._rows[block][worker]

    def target(self, connection: Connection, frame: Frame) -> memoryview | None:
        """Where this frame's payload goes."""
        if frame.sender >= len(self._lives):
            raise WireError(f"a frame names worker {frame.sender}, which this run does not have.")
        if frame.kind in ABOUT_ROWS:
            return self._rows_target(connection, frame)
        if frame.block >= len(self.windows):
            raise WireError(f"a frame names block {frame.block}, which this server does not have.")
        of_standby = frame.kind in (Kind.FOLLOW, Kind.ACK)
        self._lines.admit(connection, STANDBY if of_standby else frame.sender)
        window = self.windows[frame.block]
        carries = frame.kind == Kind.INIT or (frame.kind == Kind.PUSH and frame.weight > 0)
        coded = self._codec is not None and frame.kind == Kind.PUSH and carries
        if not self._fits(frame.length, window.table.size if carries else 0, coded):
            raise WireError(f"a frame of kind {frame.kind} has {frame.length} bytes of payload.")
        if frame.kind == Kind.PUSH:
            window.check(frame)
            self._lines.claim(connection, frame.sender)
        if not carries:
            return None
        if window.ready if frame.kind == Kind.INIT else window.known(frame):
            return self._unread[: frame.length]
        if frame.kind == Kind.INIT:
            return raw(self._rows[frame.block][frame.sender])
        return self._inbox[frame.block][frame.sender][: frame.length]

    def _rows_target(self, connection: Connection, frame: Frame) -> memoryview | None:
        """The same of a frame about rows of tables."""
        store = self._store()
        self._lines.admit(connection, frame.sender)
        if frame.length > store.most(frame.block):
            raise WireError(f"a frame of kind {frame.kind} has {frame.length} bytes of payload.")
        what = LEFT
        if frame.kind in (Kind.FETCH, Kind.USED):
            what, holder = ASKED, self._asking.setdefault(frame.sender, connection)
            if holder.closed:
                self._asking[frame.sender] = connection
            elif holder is not connection:
                raise WireError(f"worker {frame.sender} asks on another connection.")
        else:
            self._lines.claim(connection, frame.sender)
            known = self.windows[0].ready if frame.kind == Kind.FILL else self._known(frame)
            what = NOWHERE if known else LEFT
        if not frame.length:
            return None
        return store.inbox(frame.sender, frame.block, what)[: frame.length]

    def _store(self) -> RowStore:
        if self._tables is None:
            raise WireError("this run has no sparse tables.")
        return self._tables

    def _known(self, frame: Frame) -> bool:
        """Whether the push that rows belong to has come before."""
        return self.windows[0].known(frame)

    def _about_rows(self, connection: Connection, frame: Frame) -> None:
        store, worker, table = self._store(), frame.sender, frame.block
        if frame.kind == Kind.FETCH:
            payload = store.fetch(worker, table, frame.begin, frame.end, frame.length)
            answer = Frame(Kind.ROWS, worker, block=table, length=len(payload))
            connection.send(answer, payload, steady=True)
        elif frame.kind == Kind.USED:
            (count, ids, payload), after = store.used(table, frame.begin)
            answer = Frame(Kind.ROWS, worker, after, block=table, length=len(payload))
            connection.send(answer._replace(begin=count, end=ids), payload, steady=True)
        elif frame.kind == Kind.FILL:
            if not self.windows[0].ready:
                store.fill(worker, table, frame.begin, frame.length)
        elif not self._known(frame):
            store.leave(worker, frame.sequence, table, frame.begin, frame.end, frame.length)

    def _fits(self, length: int, count: int, coded: bool) -> bool:
        if coded and self._codec is not None:
            return 0 < length <= self._codec.room(count)
        return length == count * FLOAT_BYTES

    def handle(self, connection: Connection, frame: Frame) -> None:
        """Act on a frame whose payload is where it was to go."""
        if connection.owed > self._most_owed and connection is not self._standby:
            raise WireError("this peer asks for more than it takes.")
        if frame.sender in self._missed and frame.kind in (Kind.PULL, Kind.PUSH):
            self._missed.discard(frame.sender)
            self.returned.append(frame.sender)
        match frame.kind:
            case Kind.INIT:
                self.windows[frame.block].init(self._rows[frame.block][frame.sender])
            case Kind.PULL:
                self._pull(connection, frame)
            case Kind.PUSH:
                window = self.windows[frame.block]
                if self._codec is not None and frame.weight > 0 and not window.known(frame):
                    before = self._watch.at("decode")
                    data = self._coded[frame.sender][: frame.length]
                    self._codec.decode(data, self._rows[frame.block][frame.sender])
                    self._watch.at(before)
                window.push(connection, frame)
            case Kind.ROWS | Kind.FETCH | Kind.FILL | Kind.USED:
                self._about_rows(connection, frame)
            case Kind.LEAVE:
                self.leave(frame.sender)
            case Kind.FOLLOW if self._follower is not None:
                ready = [window for window in self.windows if window.ready]
                self._follower.begin(connection, frame.sequence, ready)
            case Kind.ACK if self._follower is not None:
                window = self.windows[frame.block]
                self._follower.ack(connection, frame, window.table.version)
                window.release()
            case _:
                raise WireError(f"a server does not take frames of kind {frame.kind}.")

    @property
    def _standby(self) -> Connection | None:
        return self._follower.line if self._follower is not None else None

    def tend(self) -> bool:
        """What is not asked for by a frame: notice that a standby is gone, copy for a checkpoint.

        Whether there is more to do, even if no frame comes.
        """
        if self._follower is not None and self._follower.lost():
            self._release()
        return self.copying is not None and self.copying.turn()

    def keep(self) -> Copying:
        """Begin to copy what a checkpoint needs, in place of one that was begun before."""
        self.copying = Copying(self.windows, len(self._lives))
        return self.copying

    def permit(self, number: int) -> None:
        """The supervisor knows that this server goes on without its standby."""
        if self._follower is not None:
            self._follower.permit(number)
            self._release()

    def _release(self) -> None:
        for window in self.windows:
            window.release()

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

    def meet(self, lives: Sequence[int], left: Sequence[int]) -> None:
        """How things stand when a server takes over: each worker's life, and who has left."""
        for worker in self._seat(len(lives)):
            for window in self.windows:
                window.gate.join(worker)
        self._lives = list(lives)
        for worker in left:
            self.leave(worker)

    def leave(self, worker: int) -> None:
        """The worker has no more pushes. Said twice, it is as if it were said once."""
        for window in self.windows:
            window.leave(worker)

    def lose(self, worker: int, life: int) -> None:
        """This life of a worker is over, by the supervisor's word: nobody waits for it.

        One that is to come for the first time has had a life, too, that nobody has seen.
        """
        self._seat(worker + 1)
        self._lives[worker], self._lost[worker] = life + 1, True
        self._missed.discard(worker)
        self._lines.drop(worker)
        if (asking := self._asking.pop(worker, None)) is not None:
            asking.close()
        self.leave(worker)

    def missing(self, now: float) -> list[int]:
        """Workers whose connection has been gone for longer than their lease, each once."""
        return self._lines.missing(self._standby, now)

    def miss(self, worker: int) -> None:
        """Nobody waits for this worker any more, by the supervisor's word."""
        self._missed.add(worker)
        self.leave(worker)

    def meet_again(self, worker: int) -> None:
        """All servers hear it again, by the supervisor's word: it counts from now on."""
        self._missed.discard(worker)
        for window in self.windows:
            window.gate.join(worker)

    def harm(
        self, cut: Collection[int], mute: Collection[int], now: float, slow: float = 1.0
    ) -> None:
        """The connections of these are closed, or silent, until others are named; updates take so
        many times as long."""
        self._lines.harm(cut, mute, self._standby, now)
        for window in self.windows:
            window.slow = slow
