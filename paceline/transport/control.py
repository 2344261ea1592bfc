"""The control connection between the supervisor and a role: JSON objects, a line each.

It carries decisions and reports, never gradients. Its end is also a sign of life: a role whose
supervisor is gone reads the end of the stream, and the other way round.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from paceline.errors import PeerLost
from paceline.transport.counts import Counts

MAX_LINE = 1 << 20
TIME = "time"  # the answer to whoever asks for it, and to nobody else
Message = dict[str, Any]


class Control:
    """One end. Thread-safe: a prefetching thread may wait for leases while the loop reports.

    `ring` is called after each message that is sent: the other end need not look for them.
    """

    def __init__(self, sock: socket.socket, ring: Callable[[], None] = lambda: None) -> None:
        sock.setblocking(False)
        self._ring = ring
        self._sock = sock
        self._partial = b""
        self._inbox: deque[Message] = deque()
        self._lock = threading.Lock()
        self._sending = threading.Lock()
        self.ended = False
        self.counts = Counts()

    def fileno(self) -> int:
        return self._sock.fileno()

    def send(self, kind: str, **fields: Any) -> None:
        """Send one message; a peer that is gone is noted, not raised: its end is read elsewhere."""
        line = json.dumps({"kind": kind, **fields}, separators=(",", ":")).encode() + b"\n"
        deadline = time.monotonic() + 10.0
        with self._sending:
            self.counts.messages_sent += 1
            self.counts.sent += len(line)
            while line:
                try:
                    line = line[self._sock.send(line) :]
                except BlockingIOError:
                    if time.monotonic() > deadline:
                        self.ended = True
                        return
                    self._stirs(select.POLLOUT, 0.1)
                except OSError:  # its last words may still be here: only reading ends them
                    return
            self._ring()

    def poll(self) -> list[Message]:
        """Every message that is here now, but for those that somebody waits for elsewhere."""
        with self._lock:
            self._drain()
            found = [message for message in self._inbox if message["kind"] != TIME]
            self._inbox = deque(message for message in self._inbox if message["kind"] == TIME)
            return found

    def take(self, kind: str) -> Message | None:
        """The oldest message of this kind that is here now, if any; others stay."""
        with self._lock:
            self._drain()
            for message in self._inbox:
                if message["kind"] == kind:
                    self._inbox.remove(message)
                    return message
            return None

    def heard(self, *kinds: str) -> list[Message]:
        """Every message of these kinds that is here now, in the order they came; others stay."""
        with self._lock:
            self._drain()
            if not self._inbox:
                return []
            found = [message for message in self._inbox if message["kind"] in kinds]
            for message in found:
                self._inbox.remove(message)
            return found

    def holds(self, kind: str) -> bool:
        """Whether a message of this kind is here; it stays."""
        with self._lock:
            self._drain()
            return any(message["kind"] == kind for message in self._inbox)

    def wait(self, *kinds: str, seconds: float) -> Message:
        """Wait for a message of one of these kinds."""
        deadline = time.monotonic() + seconds
        while True:
            for kind in kinds:
                if (message := self.take(kind)) is not None:
                    return message
            if self.ended:
                raise PeerLost("the supervisor is gone.")
            left = deadline - time.monotonic()
            if left <= 0:
                raise PeerLost(f"no '{kinds[0]}' from the supervisor in {seconds:.0f} s.")
            # Short naps: another thread may have put the message into the inbox meanwhile.
            self._stirs(select.POLLIN, min(left, 0.05))

    def _stirs(self, what: int, seconds: float) -> None:
        """Sleep until the socket can be read or written, or so many seconds."""
        poll = select.poll()  # not select(): that fails for descriptors beyond 1,023
        poll.register(self._sock, what)
        poll.poll(seconds * 1000)

    def _drain(self) -> None:
        while not self.ended:
            try:
                data = self._sock.recv(1 << 16)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self.ended = True
                return
            *lines, self._partial = (self._partial + data).split(b"\n")
            self.counts.received += len(data)
            self.counts.messages_received += len(lines)
            for line in lines:
                with contextlib.suppress(ValueError):  # a line torn by a dying role is no message
                    message = json.loads(line)
                    if isinstance(message, dict) and "kind" in message:
                        self._inbox.append(message)
            if len(self._partial) > MAX_LINE:
                self.ended = True

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)
        self._sock.close()


def pair() -> tuple[socket.socket, socket.socket]:
    """Both ends of a control connection on one host; neither is inherited by accident."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    for end in (ours, theirs):
        os.set_inheritable(end.fileno(), False)
    return ours, theirs
