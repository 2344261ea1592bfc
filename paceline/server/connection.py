"""One peer of a server: its half-read frame, its half-sent answers, whether it is one of ours."""

from __future__ import annotations

import selectors
import socket
import time
from typing import TYPE_CHECKING, Protocol

from paceline.errors import WireError
from paceline.transport import auth
from paceline.transport.frames import HEADER_BYTES, MAX_FAULT, Frame, Kind, pack, unpack
from paceline.transport.stream import Stream

if TYPE_CHECKING:
    from paceline.server.tally import Tally

INTRODUCTION_SECONDS = 5.0
STANDBY = "standby"
FRAMES = 64  # read of one peer before the next has its turn


class Handler(Protocol):
    def target(self, connection: Connection, frame: Frame) -> memoryview | None: ...

    def handle(self, connection: Connection, frame: Frame) -> None: ...


class Connection:
    """Non-blocking. Reads nothing from a stranger beyond the fixed answer to its nonce."""

    def __init__(
        self,
        sock: socket.socket,
        selector: selectors.BaseSelector,
        secret: bytes,
        tally: Tally,
    ) -> None:
        self._stream = Stream(sock)
        self._selector = selector
        self._secret = secret
        self._tally = tally
        self._counts = tally.stranger()
        self._known = False  # who it is
        self._nonce = auth.new_nonce()
        self._trusted = False
        self._since = time.monotonic()
        self._answer = bytearray(auth.ANSWER_BYTES)
        self._header = bytearray(HEADER_BYTES)
        self._target = memoryview(self._answer)
        self._got = 0
        self._frame: Frame | None = None  # whose payload is being read
        self._watching = selectors.EVENT_READ
        self.closed = False
        self._silent = False
        selector.register(self._stream, self._watching, self)
        self._send(memoryview(self._nonce))

    @property
    def owed(self) -> int:
        """Bytes of answers that this peer has not taken."""
        return self._stream.owed

    def ready(self, mask: int, handler: Handler) -> None:
        if self._silent:
            return
        if mask & selectors.EVENT_READ:
            self._read(handler)
        if not self.closed and self._stream.clogged:
            self._flush()

    def send(self, frame: Frame, *payload: memoryview, steady: bool) -> None:
        """Send a payload that stays as it is until sent, or a copy of what cannot go at once."""
        self._counts.messages_sent += 1
        self._send(memoryview(pack(frame)), *payload)
        if not steady:
            self._stream.keep_rest()

    def refuse(self, sentence: str) -> None:
        """Say why, as far as that goes without waiting, and hang up."""
        text = sentence.encode()[:MAX_FAULT]
        self._send(memoryview(pack(Frame(Kind.FAULT, 0, length=len(text))) + text))
        self.close()

    def expired(self) -> bool:
        """A stranger that has not proved itself in time."""
        return not self._trusted and time.monotonic() - self._since > INTRODUCTION_SECONDS

    def mute(self, silent: bool) -> None:
        """Whether nothing gets through: neither is read nor sent, and nobody hangs up."""
        if self.closed or silent == self._silent:
            return
        self._silent = silent
        if silent:
            self._selector.unregister(self._stream)
        else:
            self._selector.register(self._stream, self._watching, self)
            self._flush()

    def limit(self, rate: float) -> None:
        """Send no more than so many bytes a second."""
        self._stream.limit(rate)

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            if not self._silent:
                self._selector.unregister(self._stream)
            self._stream.close()
            self._is("")

    def _read(self, handler: Handler) -> None:
        """Take what is here: part of a payload, or some frames, so that no peer starves another."""
        frames = 0
        while not self.closed and (frames < FRAMES or self._stream.waiting):
            try:
                count = self._stream.read(self._target[self._got :])
            except OSError:
                self.close()
                return
            if count == 0:
                return
            self._got += count
            self._counts.received += count
            if self._got < len(self._target):
                if self._frame is not None and not self._stream.waiting:
                    return
                continue
            self._complete(handler)
            frames += self._frame is None

    def _complete(self, handler: Handler) -> None:
        self._got = 0
        if not self._trusted:
            proof = auth.accept(self._secret, self._nonce, bytes(self._answer))
            if proof is None:
                raise WireError("this peer does not belong to the run.")
            self._trusted = True
            self._target = memoryview(self._header)
            self._send(memoryview(proof))
            return
        frame = self._frame
        if frame is None:
            frame = unpack(self._header)
            payload = handler.target(self, frame)
            self._count(frame)
            if payload is not None:
                self._frame, self._target = frame, payload
                return
        self._frame, self._target = None, memoryview(self._header)
        handler.handle(self, frame)

    def _count(self, frame: Frame) -> None:
        """By the first that tells whose it is: of the first parameters that does not matter."""
        self._counts.messages_received += 1
        if not self._known and frame.kind != Kind.INIT:
            standby = frame.kind in (Kind.FOLLOW, Kind.ACK)
            self._is(STANDBY if standby else f"worker-{frame.sender}")

    def _is(self, peer: str) -> None:
        if not self._known:
            self._known = True
            self._counts = self._tally.known(self._counts, peer)

    def _send(self, *parts: memoryview) -> None:
        if not self.closed:
            self._stream.queue(*parts)
            self._flush()

    @property
    def clogged(self) -> bool:
        """Whether an answer is on its way that this peer, or the network, has not taken yet."""
        return self._stream.clogged and not self.closed

    @property
    def reading(self) -> bool:
        """Whether a frame has begun to come."""
        return (self._frame is not None or self._got > 0) and not self.closed

    def _flush(self) -> None:
        if self._silent:
            return
        before = self._tally.watch.at("send")
        try:
            self._counts.sent += self._stream.flush()
        except OSError:
            self.close()
            return
        finally:
            self._tally.watch.at(before)
        mask = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._stream.clogged else 0)
        if mask != self._watching:
            self._watching = mask
            self._selector.modify(self._stream, mask, self)
