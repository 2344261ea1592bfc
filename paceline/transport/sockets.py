"""Listening and connecting, and a worker's line to a server."""

from __future__ import annotations

import socket
import ssl
import time
from typing import TYPE_CHECKING

from paceline.errors import PeerLost, RunFailed, WireError
from paceline.transport import auth
from paceline.transport.counts import Counts
from paceline.transport.frames import HEADER_BYTES, MAX_FAULT, Frame, Kind, pack, unpack
from paceline.transport.tls import client_context

if TYPE_CHECKING:
    from collections.abc import Callable

# The longest a worker waits for an answer: long, since a gate may hold it behind a slow peer. A
# dead peer is noticed at once, by its closed connection.
PATIENCE = 300.0
CONNECT_SECONDS = 10.0
PACING = getattr(socket, "SO_MAX_PACING_RATE", 47)  # Linux's number, where Python has no name
SILENCE = 10.0  # the least: a peer that takes nothing for a moment must not be taken for one gone


def listen(address: str) -> tuple[socket.socket, str]:
    """A listening socket on `host:port`, and the address it really has."""
    host, _, port = address.rpartition(":")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host, int(port)))
    except (OSError, OverflowError) as wrong:
        sock.close()
        why = str(getattr(wrong, "strerror", None) or wrong).lower()
        raise RunFailed(
            f"cannot listen on {host}:{port}: {why}; choose another --port, or 0 for a free one."
        ) from None
    sock.listen(128)
    return sock, f"{host}:{sock.getsockname()[1]}"


def tune(sock: socket.socket, lease: float = 0.0) -> None:
    """Small frames must not wait for company; a peer that the network swallowed is gone.

    With a lease, the system looks for signs of life of the other host, and closes the connection
    where there are none. A peer that is only busy, or frozen, still gives them.
    """
    if sock.family == socket.AF_UNIX:
        return
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if lease and hasattr(socket, "TCP_USER_TIMEOUT"):
        silence = silent_for(lease)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL):
            sock.setsockopt(socket.IPPROTO_TCP, option, max(1, int(silence / 3)))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 2)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(1000 * silence))


def silent_for(lease: float) -> float:
    """After how many seconds without a sign of life the system closes a connection."""
    return min(max(SILENCE, 2 * lease), 3600.0)


def limit(sock: socket.socket, rate: float) -> None:
    """From now on the system sends no more than so many bytes a second on it."""
    sock.setsockopt(socket.SOL_SOCKET, PACING, max(1, int(rate)))


class Line:
    """A worker's connection to one server. `counts` what went each way; those of a line that was
    lost are given to the next."""

    def __init__(self, sock: socket.socket, peer: str, counts: Counts | None = None) -> None:
        self.sock = sock
        self.peer = peer
        self._header = bytearray(HEADER_BYTES)
        self.counts = counts or Counts()

    @classmethod
    def connect(
        cls,
        address: str,
        peer: str,
        secret: bytes,
        certificate: str = "",
        lease: float = 0.0,
        counts: Counts | None = None,
    ) -> Line:
        """Connect and prove the secret both ways; inside TLS if there is a certificate."""
        host, _, port = address.rpartition(":")
        try:
            sock = socket.create_connection((host, int(port)), timeout=CONNECT_SECONDS)
        except OSError as wrong:
            raise PeerLost(
                f"cannot reach {peer} at {address}: {wrong.strerror or wrong}."
            ) from None
        tune(sock, lease)
        if certificate:
            try:
                sock = client_context(certificate).wrap_socket(sock)
            except OSError as wrong:
                raise PeerLost(f"no TLS with {peer} at {address}: {wrong}.") from None
        line = cls(sock, peer, counts)
        line._introduce(secret)
        sock.settimeout(PATIENCE)
        return line

    def _introduce(self, secret: bytes) -> None:
        nonce = bytearray(auth.NONCE_BYTES)
        self._read(memoryview(nonce))
        sent, expected = auth.answer(secret, bytes(nonce))
        self._guard(lambda: self.sock.sendall(sent))
        proof = bytearray(auth.PROOF_BYTES)
        self._read(memoryview(proof))
        if bytes(proof) != expected:
            raise WireError(f"{self.peer} could not prove that it belongs to this run.")

    def send(self, frame: Frame, payload: memoryview | None = None) -> None:
        header = pack(frame)

        def out() -> None:
            if payload is None or isinstance(self.sock, ssl.SSLSocket):
                self.sock.sendall(header)
                self.sock.sendall(payload or b"")
                return
            done = self.sock.sendmsg([header, payload])
            if done < HEADER_BYTES:
                self.sock.sendall(header[done:])
                done = HEADER_BYTES
            if done < HEADER_BYTES + len(payload):
                self.sock.sendall(payload[done - HEADER_BYTES :])

        self._guard(out)
        self.counts.sent += HEADER_BYTES + frame.length
        self.counts.messages_sent += 1

    def receive(self) -> Frame:
        """The next header. A payload that follows must be taken with `fill` before the next."""
        self._read(memoryview(self._header))
        frame = unpack(self._header)
        self.counts.received += HEADER_BYTES
        self.counts.messages_received += 1
        if frame.kind == Kind.FAULT:
            text = bytearray(min(frame.length, MAX_FAULT))
            self._read(memoryview(text))
            raise PeerLost(f"{self.peer} refused: {text.decode(errors='replace')}")
        return frame

    def fill(self, target: memoryview, length: int) -> None:
        """Receive a payload of `length` bytes straight into `target`."""
        if length != len(target):
            raise WireError(f"{self.peer} sent {length} bytes where {len(target)} were due.")
        self._read(target)
        self.counts.received += len(target)

    def _read(self, target: memoryview) -> None:
        def fill() -> None:
            got = 0
            while got < len(target):
                count = self.sock.recv_into(target[got:])
                if count == 0:
                    raise ConnectionResetError
                got += count

        self._guard(fill)

    def _guard(self, act: Callable[[], None]) -> None:
        since = time.monotonic()
        try:
            act()
        except TimeoutError:
            waited = time.monotonic() - since
            raise PeerLost(f"{self.peer} has not answered for {waited:.0f} s.") from None
        except OSError:
            raise PeerLost(f"{self.peer} closed the connection.") from None

    def close(self) -> None:
        self.sock.close()
