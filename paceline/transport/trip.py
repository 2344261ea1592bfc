"""One end of a line that never blocks, and the frame that is half read on it."""

from __future__ import annotations

import selectors
from collections.abc import Callable

from paceline.errors import PeerLost
from paceline.transport.frames import HEADER_BYTES, MAX_FAULT, Frame, Kind, unpack
from paceline.transport.sockets import Line
from paceline.transport.stream import Stream


class Trip:
    """Of a line that is introduced already; from now on it is read and written here alone."""

    def __init__(self, line: Line) -> None:
        self.line = line
        self.stream = Stream(line.sock)
        self.watching = selectors.EVENT_READ
        self._header = bytearray(HEADER_BYTES)
        self._target = memoryview(self._header)
        self._got = 0
        self._frame: Frame | None = None  # whose payload is being read

    @property
    def reading(self) -> bool:
        """Whether a frame has begun to come."""
        return self._frame is not None or self._got > 0

    def flush(self) -> int:
        try:
            return self.stream.flush()
        except OSError:
            raise PeerLost(f"{self.line.peer} closed the connection.") from None

    def read(self, place: Callable[[Frame], memoryview]) -> Frame | None:
        """The next frame whose payload is in its place, or None until more comes."""
        while True:
            try:
                count = self.stream.read(self._target[self._got :])
            except OSError:
                raise PeerLost(f"{self.line.peer} closed the connection.") from None
            if count == 0:
                return None
            self.line.counts.received += count
            self._got += count
            if self._got < len(self._target):
                continue
            self._got = 0
            if self._frame is None:
                self._frame = frame = unpack(self._header)
                self.line.counts.messages_received += 1
                fault = frame.kind == Kind.FAULT
                self._target = (
                    memoryview(bytearray(max(1, min(frame.length, MAX_FAULT))))
                    if fault
                    else place(frame)
                )
                continue
            frame, text = self._frame, self._target
            self._frame, self._target = None, memoryview(self._header)
            if frame.kind == Kind.FAULT:
                raise PeerLost(f"{self.line.peer} refused: {bytes(text).decode(errors='replace')}")
            return frame
