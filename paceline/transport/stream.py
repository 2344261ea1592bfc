"""A socket that never blocks: sends what goes at once and keeps the rest, reads what is here."""

from __future__ import annotations

import socket
import ssl
from collections import deque

from paceline.transport.sockets import limit

WOULD_BLOCK = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
PARTS = 64  # sent in one call; the system has a limit


class Stream:
    """Payloads are sent from where they lie and read straight to where they belong.

    One thread may queue while another sends.
    """

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._sock = sock
        self._tls = sock if isinstance(sock, ssl.SSLSocket) else None
        self._shaken = self._tls is None  # hands, as TLS must before anything is said
        self._out: deque[memoryview] = deque()

    def fileno(self) -> int:
        return self._sock.fileno()

    @property
    def clogged(self) -> bool:
        """Whether something waits to be sent that could be sent."""
        return self._shaken and bool(self._out)

    @property
    def owed(self) -> int:
        """How many bytes wait to be sent."""
        return sum(map(len, self._out))

    @property
    def waiting(self) -> bool:
        """Whether bytes were received that the selector does not know of: TLS keeps some back."""
        return self._tls is not None and self._tls.pending() > 0

    def queue(self, *parts: memoryview) -> None:
        self._out.extend([part for part in parts if len(part)])  # nothing would never be sent

    def keep_rest(self) -> None:
        """Copy what is left of the last part: its owner is about to change it."""
        if self._out:
            self._out[-1] = memoryview(bytes(self._out[-1]))

    def flush(self) -> int:
        """Send what goes at once: how many bytes. OSError: the peer is gone."""
        total = 0
        while self._out and self._shake():
            try:
                if self._tls is not None:
                    sent = self._sock.send(self._out[0])
                else:
                    # By number, not by an iterator, which would not survive a queue that grows.
                    some = range(min(PARTS, len(self._out)))
                    sent = self._sock.sendmsg([self._out[n] for n in some])
            except WOULD_BLOCK:
                break
            total += sent
            while sent:
                first = self._out.popleft()
                if sent < len(first):
                    self._out.appendleft(first[sent:])
                    break
                sent -= len(first)
        return total

    def read(self, target: memoryview) -> int:
        """Read what is here: how many bytes, perhaps none. OSError: the peer is gone."""
        if not self._shake():
            return 0
        try:
            count = self._sock.recv_into(target)
        except WOULD_BLOCK:
            return 0
        if count == 0:
            raise ConnectionResetError
        return count

    def _shake(self) -> bool:
        """Whether TLS is ready; if not, go on with what the peer has said so far."""
        if not self._shaken and self._tls is not None:
            try:
                self._tls.do_handshake()
            except WOULD_BLOCK:
                return False
            self._shaken = True
        return True

    def limit(self, rate: float) -> None:
        """Send no more than so many bytes a second."""
        limit(self._sock, rate)

    def close(self) -> None:
        self._sock.close()
