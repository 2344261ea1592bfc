"""The listening end of a link: swallows what is pushed, answers what is pulled.

    client                      listener
      │ PUSH   n bytes            │   swallowed
      │ PULL   sequence = n  ───► │
      │ ◄─────────────── STATE    │   n bytes; none tells that all pushed before has arrived

The frames, the proof of the secret and the connections are those of a parameter server. It holds
one block to receive into and one to send from, whoever comes; it serves few at a time, and none
of them for long; nothing that it receives is looked at or kept.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from paceline.errors import WireError
from paceline.server.connection import Connection
from paceline.server.tally import Tally
from paceline.transport.frames import Frame, Kind
from paceline.transport.sockets import tune

BLOCK = 1 << 21  # bytes of a frame, at most
OWED = 8 * BLOCK  # bytes of answers that a peer has not taken
GUESTS = 8  # at a time
STAY = 120.0  # seconds a guest may take
EVERY = 0.2


class Sink:
    """What a connection asks of whoever handles its frames."""

    def __init__(self, welcome: Callable[[Connection], None] = lambda _: None) -> None:
        self._into, self._from = memoryview(bytearray(BLOCK)), memoryview(bytes(BLOCK))
        self._welcome = welcome

    def target(self, connection: Connection, frame: Frame) -> memoryview | None:
        if frame.kind not in (Kind.PUSH, Kind.PULL):
            raise WireError("only pushes and pulls are measured here.")
        wanted = frame.length if frame.kind == Kind.PUSH else frame.sequence
        if wanted > BLOCK or (frame.kind == Kind.PULL and frame.length):
            raise WireError(f"a frame has at most {BLOCK:,} bytes here.")
        return self._into[: frame.length] if frame.length else None

    def handle(self, connection: Connection, frame: Frame) -> None:
        self._welcome(connection)
        if frame.kind == Kind.PULL:
            if connection.owed > OWED:
                raise WireError("more was asked for than was taken.")
            answer = Frame(Kind.STATE, 0, length=frame.sequence)
            connection.send(answer, self._from[: frame.sequence], steady=True)


@dataclass(slots=True)
class Guest:
    name: str
    since: float = field(default_factory=time.monotonic)
    known: bool = False  # has proved the secret, and said something


def serve(
    listener: socket.socket,
    secret: bytes,
    seconds: float,
    told: Callable[[str], None] = lambda _: None,
) -> None:
    """Serve for so long; `told` hears who comes and who is refused. Closes the listener."""
    selector = selectors.DefaultSelector()
    listener.setblocking(False)
    selector.register(listener, selectors.EVENT_READ)
    guests: dict[Connection, Guest] = {}
    tally, until = Tally(), time.monotonic() + seconds

    def welcome(connection: Connection) -> None:
        guest = guests[connection]
        if not guest.known:
            guest.known = True
            told(f"{guest.name} measures")

    sink = Sink(welcome)
    try:
        while (now := time.monotonic()) < until:
            for key, mask in selector.select(min(EVERY, until - now)):
                if key.data is None:
                    _accept(listener, selector, secret, tally, guests)
                    continue
                try:
                    key.data.ready(mask, sink)
                except WireError as wrong:
                    told(f"{guests[key.data].name} refused: {wrong}")
                    key.data.refuse(str(wrong))
            for connection, guest in list(guests.items()):
                if connection.expired() or time.monotonic() - guest.since > STAY:
                    connection.close()
                if connection.closed:
                    del guests[connection]
    finally:
        for connection in guests:
            connection.close()
        selector.close()
        listener.close()


def _accept(
    listener: socket.socket,
    selector: selectors.BaseSelector,
    secret: bytes,
    tally: Tally,
    guests: dict[Connection, Guest],
) -> None:
    with contextlib.suppress(OSError):  # gone again, or no descriptor left for it
        sock, address = listener.accept()
        if len(guests) >= GUESTS:
            sock.close()
            return
        tune(sock)
        guests[Connection(sock, selector, secret, tally)] = Guest(str(address[0]))
