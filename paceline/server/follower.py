"""The standby as its server sees it: what is sent to it, and which answers wait for it.

    nobody ─FOLLOW─► catching up ─every block acknowledged─► in step
       ▲                  │                                     │ its line is gone
       │◄─────────────────┘                                     ▼
       └────────────────────── the supervisor knows ──────── asking

A block is followed from when its base was sent: each update of it goes to the standby too, and is
answered to workers once the standby has it. So all that a standby in step lacks is unknown to
everybody. It may only be left behind when the supervisor knows that it must not take over.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from paceline.errors import WireError
from paceline.transport.frames import Frame

if TYPE_CHECKING:
    from paceline.server.connection import Connection

BASES = 2  # on their way at once: training goes on meanwhile, and each is a copy

Tell = Callable[[str, int, int], None]  # "in-step" or "alone", its number, the standby's life


class Block(Protocol):
    """What is followed."""

    index: int

    def base(self) -> tuple[Frame, bytes]:
        """All of it as it stands."""
        ...


class Follower:
    """At most one. `tell` reaches the supervisor, which answers an "alone" through `permit`."""

    def __init__(self, blocks: int, tell: Tell) -> None:
        self._tell = tell
        self._line: Connection | None = None
        self._life = -1
        self._acked: list[int | None] = [None] * blocks  # None: not followed
        self._due: deque[Block] = deque()  # blocks whose base is still to be sent
        self._bases: set[int] = set()  # on their way
        self._in_step = False
        self._count = 0
        self._known: int | None = None  # by this number the supervisor knows one that is in step

    @property
    def line(self) -> Connection | None:
        return self._line

    def follows(self, block: int) -> bool:
        return self._acked[block] is not None

    def behind(self, block: int, version: int) -> bool:
        """Whether an answer with this version of the block has to wait."""
        acked = self._acked[block]
        return self._known is not None if acked is None else acked < version

    def begin(self, line: Connection, life: int, blocks: Sequence[Block]) -> None:
        """A standby has come. It is told these blocks, and others as they get parameters."""
        if self._line is not None and not self._line.closed:
            if life <= self._life:
                raise WireError("this server has a standby already.")
            self._line.close()
        self.lost()
        self._line, self._life = line, life
        self._due.extend(blocks)
        self._go_on()

    def add(self, block: Block) -> None:
        """There are parameters in this block now."""
        if self._line is not None:
            self._due.append(block)
            self._go_on()

    def update(self, frame: Frame, *payload: memoryview) -> None:
        """An update of a block that is followed. What it is sent from stays until it is acked."""
        if self._line is not None:
            self._line.send(frame, *payload, steady=True)

    def ack(self, line: Connection, frame: Frame, version: int) -> None:
        """The standby has a version of a block, which itself is at `version` by now."""
        acked = self._acked[frame.block]
        if line is not self._line or acked is None or not acked < frame.version <= version:
            raise WireError(f"nobody waits to hear of version {frame.version} of a block.")
        self._acked[frame.block] = frame.version
        self._bases.discard(frame.block)
        self._go_on()

    def lost(self) -> bool:
        """Whether the standby's line has closed since this was last asked."""
        if self._line is None or not self._line.closed:
            return False
        self._line, self._in_step = None, False
        self._acked = [None] * len(self._acked)
        self._due.clear()
        self._bases.clear()
        if self._known is not None:
            self._tell("alone", self._known, self._life)
        return True

    def permit(self, number: int) -> None:
        """The supervisor knows that the standby with this number is behind."""
        if number == self._known:
            self._known = None

    def _go_on(self) -> None:
        """Send what bases there is room for; say so once all are there."""
        while self._due and len(self._bases) < BASES and self._line is not None:
            block = self._due.popleft()
            frame, payload = block.base()
            self._bases.add(block.index)
            self._acked[block.index] = -1
            self._line.send(frame, memoryview(payload), steady=True)
        caught_up = not self._due and not self._bases
        if self._line is not None and caught_up and not self._in_step:
            self._in_step = True
            self._count += 1
            self._known = self._count
            self._tell("in-step", self._count, self._life)
