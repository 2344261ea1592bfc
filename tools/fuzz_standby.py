"""A standby inside the same process, which follows a server that is told anything."""

from __future__ import annotations

import selectors

import numpy as np
import torch
from torch import Tensor

from paceline.server.connection import Connection
from paceline.server.desk import Desk
from paceline.server.shadow import Shadow
from paceline.server.tally import Tally
from paceline.transport import auth
from paceline.transport.frames import HEADER_BYTES, Frame, Kind, pack, unpack
from tools.fuzz_pipes import Pipe, Selector


class Wrong(Exception):
    """What should not have come of some bytes."""


def held(desk: Desk) -> Tensor:
    """The parameters that stand."""
    return torch.cat([window.table.held[0] for window in desk.windows])


class Standby:
    """Follows a server, and must be as it is to the bit."""

    def __init__(
        self, server: Desk, own: Desk, workers: int, selector: Selector, secret: bytes
    ) -> None:
        self._server, self._own = server, own
        self._own.params.zero_()
        self._shadow = Shadow(own, workers)
        self._sock, theirs = Pipe.pair(1 << 20)
        self._connection = Connection(
            *(theirs, selector, secret, Tally())  # type: ignore[arg-type]
        )
        answer, _ = auth.answer(secret, self._sock.recv(auth.NONCE_BYTES))
        self._sock.sendall(answer)
        self._turn()
        self._sock.recv(auth.PROOF_BYTES)
        # Nobody can be in a later life: no peer may take its place.
        self._sock.sendall(pack(Frame(Kind.FOLLOW, 0, 2**64 - 1)))
        self.follow()

    def follow(self) -> None:
        """Take everything that was sent, and acknowledge it."""
        self._turn()
        while True:
            try:
                header = self._sock.recv(HEADER_BYTES)
            except BlockingIOError:
                return
            frame = unpack(header)
            target = self._shadow.place(frame)
            target[:] = self._sock.recv(frame.length)
            self._shadow.take(frame)
            ack = Frame(Kind.ACK, 0, version=frame.version, block=frame.block)
            self._sock.sendall(pack(ack))
            self._turn()

    def _turn(self) -> None:
        self._connection.ready(selectors.EVENT_READ | selectors.EVENT_WRITE, self._server)
        if self._connection.closed:
            raise Wrong("the standby was refused")

    def compare(self) -> None:
        self.follow()
        own, due = held(self._own).numpy(), held(self._server).numpy()
        if not np.array_equal(own, due, equal_nan=True):
            raise Wrong("the standby holds other parameters")
        for mine, other in zip(self._own.windows, self._server.windows, strict=True):
            if mine.table.version != other.table.version:
                raise Wrong("the standby holds another version")
