"""What a standby holds, and how frames of its server keep it in step. Knows no sockets.

An update is the same arithmetic on the same numbers in the same order, so a standby that has a
version has it to the bit. A base is put into its place only once all of it is here: until then the
block is what it was.
"""

from __future__ import annotations

import math

import torch

from paceline.errors import WireError
from paceline.server.desk import Desk
from paceline.server.note import Note, note_bytes
from paceline.server.window import MOST
from paceline.transport.frames import Frame, Kind
from paceline.transport.memory import FLOAT_BYTES, raw


class Shadow:
    """Of a desk that serves nobody until `take_over`."""

    def __init__(self, desk: Desk, room: int) -> None:
        self._desk, self._windows = desk, desk.windows
        self._notes: dict[int, bytes] = {}  # of the blocks that have parameters
        self._note = note_bytes(room)
        widest = max(sum(part.numel() for part in w.table.held) for w in self._windows)
        inbox = torch.empty(self._note + widest * FLOAT_BYTES, dtype=torch.uint8)
        self._inbox = raw(inbox)
        self._floats = inbox[self._note :].view(torch.float32)
        for window in self._windows:
            window.table.lend(0, window.table.chunked(self._floats[: window.table.size]))

    @property
    def applied(self) -> int:
        """Updates so far."""
        return self._windows[0].table.version

    def place(self, frame: Frame) -> memoryview:
        """Where this frame's payload goes; WireError if it cannot be the next one."""
        if frame.kind not in (Kind.BASE, Kind.APPLY):
            raise WireError(f"a standby does not take frames of kind {frame.kind}.")
        if frame.block >= len(self._windows):
            raise WireError(f"a frame names block {frame.block}, which this standby does not have.")
        table = self._windows[frame.block].table
        if frame.kind == Kind.BASE:
            count = sum(part.numel() for part in table.held)
        else:
            count = table.size if frame.weight else 0
            if frame.block not in self._notes or frame.version != table.version + 1:
                raise WireError(f"an update makes version {frame.version} of {table.version}.")
            if not (math.isfinite(frame.weight) and abs(frame.lr) <= MOST):
                raise WireError(f"an update has weight {frame.weight:g} and rate {frame.lr:g}.")
        if frame.length != self._note + count * FLOAT_BYTES:
            raise WireError(f"a frame of kind {frame.kind} has {frame.length} bytes of payload.")
        return self._inbox[: frame.length]

    def take(self, frame: Frame) -> None:
        """Make of its block what a frame says, whose payload is in its place."""
        table = self._windows[frame.block].table
        if frame.kind == Kind.BASE:
            count = table.size
            state = table.held[1]
            params, rest = self._floats[:count], self._floats[count : count + state.numel()]
            table.adopt(frame.version, params, rest.view(state.shape))
        else:
            table.apply([(0, 1.0)] if frame.weight else [], frame.lr, 0)
        self._notes[frame.block] = bytes(self._inbox[: self._note])

    def take_over(self) -> None:
        """From now on the desk serves what was held here."""
        for index, window in enumerate(self._windows):
            window.table.lend(0, window.table.chunked(self._desk.row(index, 0)))
            if index in self._notes:
                window.take_over(Note.unpack(self._notes[index]))
