"""One block of a shard: its parameters behind a gate, and who waits there for an answer."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from paceline.errors import WireError
from paceline.server.follower import Follower
from paceline.server.gate import Decision, Gate, Push
from paceline.server.kept import Marks
from paceline.server.note import Note
from paceline.server.rules import damped
from paceline.server.table import Table
from paceline.transport import slate
from paceline.transport.frames import KEEP, LEAVE, STOP, Frame, Kind
from paceline.transport.memory import raw

if TYPE_CHECKING:
    from torch import Tensor

    from paceline.server.connection import Connection
    from paceline.server.rowstore import RowStore
    from paceline.server.tally import Tally

MOST = 1e30  # of a weight, a rate or seconds: beyond float32 torch raises, and nobody means it
LAST = 2**63 - 1  # push of a worker: as far as a word of kept memory counts


def drag(began: float, times: float) -> None:
    """Be busy for as long as what began then would take if it were so many times as slow."""
    until = began + times * (time.perf_counter() - began)
    while times > 1.0 and time.perf_counter() < until:
        pass


class Done(NamedTuple):
    """A worker's last push: applied with this staleness, or dropped."""

    sequence: int
    staleness: int
    kind: Kind


class Window:
    """A push has a name, (worker, sequence): it is applied once and answered as often as asked.

    `marks`, where they are, tell a successor what stands; then the table has two places. With a
    `follower` updates go to a standby too, and answers wait for it.
    """

    def __init__(
        self,
        index: int,
        table: Table,
        gate: Gate,
        tally: Tally,
        damp: bool,
        marks: Marks | None = None,
        follower: Follower | None = None,
        room: int = 0,
        rows: RowStore | None = None,
    ) -> None:
        """A follower is told of as many workers as there is `room` for. With `rows`, what workers
        have left of tables is applied with their pushes of this block."""
        self.index = index
        self.table = table
        self.gate = gate
        self._tally = tally
        self._damp = damp
        self._marks = marks
        self._follower = follower
        self.tables = rows
        self._rows: list[memoryview] = []  # where the workers' gradients lie
        self._room = room
        self._params = [raw(table.slot(place)) for place in range(table.places)]
        self.ready = False  # there are parameters
        self.slow = 1.0  # how many times as long an update takes, on purpose
        self._early: dict[int, tuple[Connection, Frame]] = {}  # pulls from before there were
        self._waiting: dict[int, tuple[Connection, Frame]] = {}
        self._done: dict[int, Done] = {}
        # Answers that wait for a standby: one a peer and worker, however often it is asked for.
        self._held: dict[tuple[Connection, int], tuple[Frame, Done]] = {}
        self._ending = False  # somebody was asked to end: all do, after the same round
        self._wished: Callable[[Window], None] | None = None  # how to copy it for a checkpoint
        self.copied = False
        if marks is not None and marks.version is not None:
            self.table.stand(marks.version)
            self.resume(Note(marks.pushes(), marks.shares()))

    def resume(self, note: Note) -> None:
        """Go on from what a former server left in the table."""
        self._done = {w: Done(sequence, 0, Kind.STATE) for w, sequence in note.pushes.items()}
        self.gate.resume(self.table.version, note.pushes, note.shares)
        self.ready = True

    def seat(self, row: memoryview) -> None:
        """One more worker, whose gradients lie there."""
        self._rows.append(row)
        if self._marks is not None:
            self._marks.seat()

    def take_over(self, note: Note) -> None:
        """Serve what was followed so far, and leave it to a successor where that is to be."""
        self.table.move(self.table.version % self.table.places)
        self.resume(note)
        if self._marks is not None:
            self._marks.stand(self.table.version, note.pushes, self.gate.share)

    def wish(self, copy: Callable[[Window], None]) -> None:
        """Have this block copied after the round in which all are asked for a checkpoint, unless
        it is copied before that."""
        self._wished, self.copied = copy, False

    def copy(self) -> None:
        """Now, if that was wished for and there is something to copy."""
        if self._wished is not None and self.ready:
            self._wished(self)
            self._wished, self.copied = None, True

    def restore(self, version: int, params: Tensor, state: Tensor, note: Note) -> None:
        """Be what a checkpoint says. Nobody has begun yet, so those who count their own rounds
        all count from the beginning."""
        self.table.adopt(version, params, state)
        if self._marks is not None:
            self._marks.stand(version, note.pushes, lambda w: note.shares.get(w, (0, 0)))
        self._done = {w: Done(sequence, 0, Kind.STATE) for w, sequence in note.pushes.items()}
        if self.gate.holds:
            self.gate.resume(version, note.pushes, note.shares)
        self.ready = True

    def init(self, values: Tensor) -> None:
        """The first parameters are here. A second time, from another life, they change nothing."""
        if self.ready:
            return
        self.table.slot(0).copy_(values)
        if self._marks is not None:
            self._marks.stand(0, {}, self.gate.share)
        self.ready = True
        if self._follower is not None:
            self._follower.add(self)
        for connection, frame in self._early.values():
            self.pull(connection, frame)
        self._early.clear()

    def pull(self, connection: Connection, frame: Frame) -> None:
        if self.ready:
            self._answer(connection, frame, Done(self.known_of(frame.sender), 0, Kind.STATE))
        else:
            self._early[frame.sender] = connection, frame

    def join(self, connection: Connection, frame: Frame) -> None:
        """A worker that was started again. If it left a gradient here, it goes on after that."""
        self.gate.join(frame.sender)
        if frame.sender in self._waiting:
            self._waiting[frame.sender] = connection, frame
        else:
            self.pull(connection, frame)

    def check(self, frame: Frame) -> None:
        """Refuse a push that cannot be, before a byte of it takes another's place."""
        if not self.ready:
            raise WireError("a gradient came before there were parameters.")
        if frame.version > self.table.version + self.gate.ahead:
            raise WireError("a gradient names a version that there is not yet.")
        if not (0 <= frame.weight <= MOST and abs(frame.lr) <= MOST):  # nor is NaN
            raise WireError(f"a gradient has weight {frame.weight:g} and rate {frame.lr:g}.")
        if not 0 <= frame.seconds <= MOST:
            raise WireError(f"a gradient took {frame.seconds:g} seconds.")
        if self.tables is not None and frame.weight > 0 and not self.known(frame):
            self.tables.check(frame.sender, frame.sequence)
        if frame.sequence > LAST:
            raise WireError(f"a gradient has the number {frame.sequence}, which nobody counts to.")
        waiting = self._waiting.get(frame.sender)
        if waiting is not None and waiting[1].sequence != frame.sequence:
            raise WireError("a gradient came before the one before it was answered.")

    def known_of(self, worker: int) -> int:
        """The last push of the worker's that was used."""
        done = self._done.get(worker)
        return done.sequence if done else 0

    def known(self, frame: Frame) -> bool:
        """Whether this push has come before."""
        done = self._done.get(frame.sender)
        return frame.sender in self._waiting or (
            done is not None and frame.sequence <= done.sequence
        )

    def push(self, connection: Connection, frame: Frame) -> None:
        self.check(frame)
        worker = frame.sender
        known = self.known(frame)
        if known and worker not in self._waiting:
            self._answer(connection, frame, self._done[worker])
            return
        self._waiting[worker] = (connection, frame)
        if not known:
            name = worker, frame.sequence, frame.version
            push = Push(*name, frame.weight, frame.lr, frame.begin, frame.seconds)
            stop, keep, last = (bool(frame.asked & what) for what in (STOP, KEEP, LEAVE))
            self._act(self.gate.push(push._replace(stop=stop, keep=keep, last=last)))

    @property
    def holds_back(self) -> bool:
        """Whether somebody waits here for others, or for a standby."""
        return bool(self._waiting or self._held)

    def awaited(self) -> list[int]:
        """Whom those wait for who wait here, as a slate names them."""
        if self._early:
            return [slate.OTHERS]
        if self._held:
            return [slate.STANDBY]
        return [slate.worker(worker) for worker in self.gate.missing()]

    def leave(self, worker: int) -> None:
        if not self.gate.holds:  # what it pushed is applied, and nobody is there for the answer
            self._waiting.pop(worker, None)
        self._act(self.gate.leave(worker))

    def _act(self, decision: Decision) -> None:
        if decision.apply:
            before, began = self._tally.watch.at("apply"), time.perf_counter()
            version, lr = self.table.version, decision.apply[0].lr
            for p in decision.apply:
                self._done[p.worker] = Done(p.sequence, version - p.version, Kind.STATE)
            if self._damp:  # by gates that apply one at a time
                lr = damped(lr, version - decision.apply[0].version)
            into = (version + 1) % self.table.places
            grads = [(p.worker, p.weight) for p in decision.apply]
            if self._follower is not None and self._follower.follows(self.index):
                grads = self.table.pool(grads)
                self._pass_on(self._follower, version + 1, lr, grads)
            found = self.tables.begin(grads, self.index) if self.tables is not None else ()
            self.table.apply(grads, lr, into)
            if self.tables is not None:
                self.tables.apply(found, lr, version + 1)
            if self._marks is not None:
                pushes = {w: d.sequence for w, d in self._done.items()}
                self._marks.stand(version + 1, pushes, self.gate.share)
            if self.tables is not None:
                self.tables.done()
            self._agree(decision)
            drag(began, self.slow)
            self._tally.watch.at(before)
        for worker in decision.drop:
            late = self._waiting[worker][1]
            self._ending = self._ending or bool(late.asked & STOP)
            self._done[worker] = Done(late.sequence, 0, Kind.LATE)
            self._tally.dropped += self.index == 0
        for worker in (*decision.answer, *decision.drop):
            connection, frame = self._waiting.pop(worker)
            self._answer(connection, frame, self._done[worker])

    def _agree(self, decision: Decision) -> None:
        """What all do after this round; found before anybody is answered."""
        self._ending = self._ending or any(push.stop for push in decision.apply)
        if decision.keep:
            self.copy()

    def _pass_on(
        self, follower: Follower, version: int, lr: float, grads: list[tuple[int, float]]
    ) -> None:
        """Have the standby make the same update of the same numbers."""
        payload = [memoryview(self._note())]
        payload += [self._rows[worker] for worker, _ in grads]
        frame = Frame(
            Kind.APPLY,
            0,
            version=version,
            weight=float(bool(grads)),
            lr=lr,
            block=self.index,
            length=sum(map(len, payload)),
        )
        follower.update(frame, *payload)

    def _note(self) -> bytes:
        workers = len(self._rows)
        pushes = {w: done.sequence for w, done in self._done.items()}
        shares = {w: self.gate.share(w) for w in range(workers)}
        return Note(pushes, shares).pack(workers, self._room)

    def base(self) -> tuple[Frame, bytes]:
        payload = b"".join((self._note(), *(part.numpy().tobytes() for part in self.table.held)))
        version = self.table.version
        return Frame(Kind.BASE, 0, version=version, block=self.index, length=len(payload)), payload

    def release(self) -> None:
        """Answer those who waited for a standby, if it has what stands."""
        held, self._held = self._held, {}
        for (connection, _), (frame, done) in held.items():
            self._answer(connection, frame, done)

    def _answer(self, connection: Connection, frame: Frame, done: Done) -> None:
        if self._follower is not None and self._follower.behind(self.index, self.table.version):
            self._held[connection, frame.sender] = frame, done
            return
        begin, end = self.gate.share(frame.sender)
        state = Frame(
            done.kind,
            frame.sender,
            done.sequence,
            self.table.version,
            staleness=done.staleness,
            block=self.index,
            begin=begin,
            end=end,
            length=len(self._params[0]),
            asked=STOP * self._ending | KEEP * (self.copied and bool(frame.asked & KEEP)),
        )
        connection.send(state, self._params[self.table.current], steady=self.gate.steady)
