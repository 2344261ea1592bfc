"""The server's loop: frames in, the gate decides, the table applies, frames out.

    connection ──frame──► desk ──► window ──push──► gate ──decision──► table
        ▲                                                                 │
        └─────────────────────────── STATE ◄──────────────────────────────┘

One thread owns everything here. A peer can be slow, gone or hostile: each connection keeps its
own half-read frame and half-sent answer, and a bad frame ends that connection alone.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import ssl
import time
from collections.abc import Callable

from paceline.errors import WireError
from paceline.server.connection import Connection
from paceline.server.desk import Desk
from paceline.server.tally import Tally
from paceline.transport.sockets import tune


def serve(
    listener: socket.socket,
    desk: Desk,
    secret: bytes,
    tally: Tally,
    tick: Callable[[], bool],
    wake: int,
    every: float = 0.2,
    tls: ssl.SSLContext | None = None,
    lease: float = 0.0,
) -> None:
    """Serve until `tick` says to end: it is called every `every` seconds, and when `wake` stirs."""
    selector = selectors.DefaultSelector()
    listener.setblocking(False)
    selector.register(listener, selectors.EVENT_READ)
    selector.register(wake, selectors.EVENT_READ)
    open_: set[Connection] = set()
    next_tick = time.perf_counter() + every
    busy = False
    watch = tally.watch
    while True:
        watch.at(_waits(open_, desk))
        ready = selector.select(0 if busy else every)
        watch.at("receive")
        watch.row()
        for key, mask in ready:
            if key.fd == wake:
                next_tick = 0.0
            elif key.data is None:
                with contextlib.suppress(OSError):  # gone again, or no descriptor left for it
                    sock, _ = listener.accept()
                    tune(sock, lease)
                    if tls is not None:
                        sock = tls.wrap_socket(
                            sock, server_side=True, do_handshake_on_connect=False
                        )
                    open_.add(Connection(sock, selector, secret, tally))
            else:
                connection: Connection = key.data
                try:
                    connection.ready(mask, desk)
                except WireError as wrong:
                    connection.refuse(str(wrong))
                if connection.closed:
                    open_.discard(connection)
        watch.at("other")
        busy = desk.tend()
        now = time.perf_counter()
        if now >= next_tick:
            next_tick = now + every
            for connection in [c for c in open_ if c.closed or c.expired()]:
                connection.close()
                open_.discard(connection)
            if tick():
                break
    for connection in open_:
        connection.close()
    selector.close()
    listener.close()


def _waits(open_: set[Connection], desk: Desk) -> str:
    """What the server is in the middle of when it has nothing to do but to wait."""
    if any(connection.clogged for connection in open_):
        return "send"
    if any(connection.reading for connection in open_):
        return "receive"
    return "gate" if desk.holds_back else "idle"
