"""The server's loop: frames in, the gate decides, the table applies, frames out.

    connection ──frame──► desk ──push──► gate ──decision──► table
        ▲                                                     │
        └───────────────────── STATE ◄────────────────────────┘

One thread owns everything here. A peer can be slow, gone or hostile: each connection keeps its
own half-read frame and half-sent answer, and a bad frame ends that connection alone.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from torch import Tensor

from paceline.errors import WireError
from paceline.server.connection import Connection
from paceline.server.gate import Decision, Gate, Push
from paceline.server.table import Table
from paceline.transport.frames import Frame, Kind
from paceline.transport.memory import raw
from paceline.transport.sockets import tune


@dataclass(slots=True)
class Tally:
    """What a server did, for the run's table."""

    applied: int = 0
    sent: int = 0
    received: int = 0
    phases: dict[str, float] = field(
        default_factory=lambda: {"exchange": 0.0, "wait": 0.0, "update": 0.0}
    )


class Desk:
    """Answers frames for one table. Knows nothing of sockets beyond `Connection.send`.

    `grads` holds a row a worker: where that worker's gradient is when its PUSH is complete.
    """

    def __init__(self, table: Table, gate: Gate, grads: Tensor, tally: Tally) -> None:
        self._table = table
        self._gate = gate
        self._grads = grads
        self._tally = tally
        self._ready = False
        self._early: list[tuple[Connection, Frame]] = []  # pulls from before there were parameters
        self._waiting: dict[int, tuple[Connection, Frame]] = {}
        self._last: dict[int, tuple[int, int]] = {}  # worker → (sequence applied, its staleness)

    def target(self, frame: Frame) -> memoryview | None:
        """Where this frame's payload goes; a length that does not fit is refused unread."""
        if frame.sender >= self._grads.shape[0]:
            raise WireError(f"a frame names worker {frame.sender}, which this run does not have.")
        carries = frame.kind == Kind.INIT or (frame.kind == Kind.PUSH and frame.weight > 0)
        if frame.length != (self._table.size * 4 if carries else 0):
            raise WireError(f"a frame of kind {frame.kind} has {frame.length} bytes of payload.")
        if frame.length == 0:
            return None
        if frame.kind == Kind.INIT:
            if self._ready:
                raise WireError("initial parameters were sent a second time.")
            return raw(self._table.slot(0))
        return raw(self._grads[frame.sender])

    def handle(self, connection: Connection, frame: Frame) -> None:
        match frame.kind:
            case Kind.INIT:
                self._ready = True
                for early in self._early:
                    self._pull(*early)
                self._early.clear()
            case Kind.PULL if not self._ready:
                self._early.append((connection, frame))
            case Kind.PULL:
                self._pull(connection, frame)
            case Kind.PUSH:
                self._push(connection, frame)
            case Kind.LEAVE:
                self._act(self._gate.leave(frame.sender))
            case _:
                raise WireError(f"a server does not take frames of kind {frame.kind}.")

    def _pull(self, connection: Connection, frame: Frame) -> None:
        place = self._gate.place(frame.sender)
        self._table.copy(place)
        self._answer(connection, frame, place, 0)

    def _push(self, connection: Connection, frame: Frame) -> None:
        if not self._ready:
            raise WireError("a gradient came before there were parameters.")
        if frame.version > self._table.version:
            raise WireError("a gradient names a version that there is not yet.")
        sequence, staleness = self._last.get(frame.sender, (0, 0))
        if frame.sequence <= sequence:  # sent again: answered, not applied
            self._answer(connection, frame, self._gate.place(frame.sender), staleness)
            return
        known = frame.sender in self._waiting
        self._waiting[frame.sender] = (connection, frame)
        if not known:
            self._act(
                self._gate.push(
                    Push(frame.sender, frame.sequence, frame.version, frame.weight, frame.lr)
                )
            )

    def _act(self, decision: Decision) -> None:
        if decision.apply:
            began = time.perf_counter()
            pushes = [(p.worker, p.weight) for p in decision.apply]
            # Gates put into one update only workers that read the same place.
            place = self._gate.place(decision.apply[0].worker)
            for p in decision.apply:
                self._last[p.worker] = (p.sequence, self._table.version - p.version)
            self._table.apply(pushes, decision.apply[0].lr, place)
            self._tally.applied += 1
            self._tally.phases["update"] += time.perf_counter() - began
        for worker in decision.answer:
            connection, frame = self._waiting.pop(worker)
            self._answer(connection, frame, self._gate.place(worker), self._last[worker][1])

    def _answer(self, connection: Connection, frame: Frame, place: int, staleness: int) -> None:
        payload = raw(self._table.slot(place))
        state = Frame(
            Kind.STATE,
            frame.sender,
            frame.sequence,
            self._table.version,
            staleness=staleness,
            length=len(payload),
        )
        connection.send(state, payload)


def serve(
    listener: socket.socket,
    desk: Desk,
    secret: bytes,
    tally: Tally,
    tick: Callable[[], bool],
    wake: int,
    every: float = 0.2,
) -> None:
    """Serve until `tick` says to end: it is called every `every` seconds, and when `wake` stirs."""
    selector = selectors.DefaultSelector()
    listener.setblocking(False)
    selector.register(listener, selectors.EVENT_READ)
    selector.register(wake, selectors.EVENT_READ)
    open_: set[Connection] = set()
    next_tick = time.perf_counter() + every
    while True:
        began = time.perf_counter()
        ready = selector.select(every)
        woke = time.perf_counter()
        tally.phases["wait"] += woke - began
        updating = tally.phases["update"]
        for key, mask in ready:
            if key.fd == wake:
                next_tick = woke
            elif key.data is None:
                with contextlib.suppress(OSError):  # gone again, or no descriptor left for it
                    sock, _ = listener.accept()
                    tune(sock)
                    open_.add(Connection(sock, selector, secret, tally))
            else:
                connection: Connection = key.data
                try:
                    connection.ready(mask, desk)
                except WireError as wrong:
                    connection.refuse(str(wrong))
                if connection.closed:
                    open_.discard(connection)
        now = time.perf_counter()
        tally.phases["exchange"] += now - woke - (tally.phases["update"] - updating)
        if now >= next_tick:
            next_tick = now + every
            for connection in [c for c in open_ if c.expired()]:
                connection.close()
                open_.discard(connection)
            if tick():
                break
    for connection in open_:
        connection.close()
    selector.close()
    listener.close()
