"""How a worker's frames go to its servers and come back: at once, or in a thread of their own.

    begin(targets) ─► send, send, … ─► collect        once a round

A small model's exchange is two short system calls, and a thread would cost more than they do. A
large one's goes on for longer than the rest of the step: there a courier sends each block while
backward makes the next, and receives parameters meanwhile.
"""

from __future__ import annotations

import math
import os
import selectors
import threading
import time
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from paceline.errors import PacelineError, PeerLost, WireError
from paceline.transport import slate as slates
from paceline.transport.frames import Frame, Kind, pack
from paceline.transport.slate import Slate
from paceline.transport.sockets import PATIENCE, Line
from paceline.transport.trip import Trip

LOOK = 0.5  # seconds between looks at who has not answered
Targets = Sequence[Sequence[memoryview]]  # where each server's blocks of parameters go


class Answer(NamedTuple):
    server: int
    frame: Frame


class Mail(Protocol):
    """Payloads must stay as they are until `collect` has returned."""

    def begin(self, targets: Targets) -> None:
        """A round begins: every block of every server will be answered, to these places."""

    def send(self, server: int, frame: Frame, payload: memoryview | None = None) -> None: ...

    def collect(self) -> list[Answer]:
        """Every block's answer, once all are here."""
        ...

    @property
    def spent(self) -> tuple[float, float]:
        """Seconds of the last `collect` in which something was on its way out, or in."""
        ...

    def close(self) -> None: ...


class Direct:
    """Sends and receives where it is called."""

    def __init__(self, lines: Sequence[Line], slate: Slate) -> None:
        self._lines = lines
        self._slate = slate
        self._peers = [slates.server(number) for number in range(len(lines))]
        self._targets: Targets = ()
        self.spent = 0.0, 0.0

    def begin(self, targets: Targets) -> None:
        self._targets = targets

    def send(self, server: int, frame: Frame, payload: memoryview | None = None) -> None:
        self._slate.waits(self._peers[server])  # who takes nothing is waited for, too
        self._lines[server].send(frame, payload)
        self._slate.at(slates.EXCHANGE)

    def collect(self) -> list[Answer]:
        answers, pulled = [], 0.0
        for server, (line, blocks) in enumerate(zip(self._lines, self._targets, strict=True)):
            self._slate.waits(self._peers[server])
            due = set(range(len(blocks)))
            while due:
                frame = line.receive()
                began = time.perf_counter()
                line.fill(_target(blocks, due, frame, line.peer), frame.length)
                pulled += time.perf_counter() - began
                answers.append(Answer(server, frame))
        self.spent = 0.0, pulled
        self._slate.at(slates.EXCHANGE)
        return answers

    def close(self) -> None:
        pass


class Courier:
    """Sends and receives in a thread, on all lines at once; what goes wrong there is raised here.

    The caller owns `_targets` and `_answers` until `begin`, the thread until `_all_here` is set.
    """

    def __init__(self, lines: Sequence[Line], slate: Slate) -> None:
        self._slate = slate
        self._trips = [Trip(line) for line in lines]
        self._targets: Targets = [()] * len(lines)
        self._answers: list[Answer] = []
        self._due: list[set[int]] = [set() for _ in lines]  # blocks not yet begun to arrive
        self._left = 0  # blocks not yet here
        self._all_here = threading.Event()
        self._progress = 0
        self._wrong: PacelineError | None = None
        self._closing = False
        self._since = math.inf  # when the caller began to wait for answers
        self._out = self._in = 0.0  # seconds since
        self._counted = 0.0  # until when
        self._wake, self._poke = os.pipe()
        self._thread = threading.Thread(target=self._run, name="paceline-courier", daemon=True)
        self._thread.start()

    def begin(self, targets: Targets) -> None:
        self._targets, self._answers = targets, []
        self._left = sum(len(blocks) for blocks in targets)
        self._all_here.clear()
        self._due = [set(range(len(blocks))) for blocks in targets]
        if self._wrong is not None:  # since the last round: nobody is left to say so
            self._all_here.set()

    def send(self, server: int, frame: Frame, payload: memoryview | None = None) -> None:
        parts = (memoryview(pack(frame)), *(() if payload is None else (payload,)))
        trip = self._trips[server]
        trip.stream.queue(*parts)
        trip.line.counts.sent += sum(map(len, parts))
        trip.line.counts.messages_sent += 1
        os.write(self._poke, b"!")

    def collect(self) -> list[Answer]:
        seen, since = -1, time.monotonic()
        self._out = self._in = 0.0
        self._since = since
        self._slate.waits(slates.server(0))
        while not self._all_here.wait(LOOK):
            self._slate.waits(slates.server(self._awaited()))
            if self._progress != seen:
                seen, since = self._progress, time.monotonic()
            elif time.monotonic() - since > PATIENCE:
                raise PeerLost(f"no server has answered for {PATIENCE:.0f} s.")
        self._slate.at(slates.EXCHANGE)
        self._since = math.inf
        if self._wrong is not None:
            raise self._wrong
        return self._answers

    @property
    def spent(self) -> tuple[float, float]:
        return self._out, self._in

    def _awaited(self) -> int:
        """The first server that has not answered all."""
        here = Counter(answer.server for answer in self._answers)
        short = (n for n, blocks in enumerate(self._targets) if here[n] < len(blocks))
        return next(short, 0)

    def close(self) -> None:
        self._closing = True
        os.write(self._poke, b"!")
        self._thread.join(5.0)
        os.close(self._wake)
        os.close(self._poke)

    # In the thread.

    def _run(self) -> None:
        try:
            with selectors.DefaultSelector() as selector:
                selector.register(self._wake, selectors.EVENT_READ)
                for trip in self._trips:
                    selector.register(trip.stream, selectors.EVENT_READ, trip)
                while not self._closing:
                    self._turn(selector)
        except PacelineError as wrong:
            self._wrong = wrong
        except Exception as wrong:  # noqa: BLE001 - raised where the round is waited for
            self._wrong = WireError(f"the thread that sends gradients failed: {wrong!r}.")
        self._all_here.set()

    def _turn(self, selector: selectors.BaseSelector) -> None:
        # Until something stirs it waits for what it is in the middle of.
        clogged = any(trip.stream.clogged for trip in self._trips)
        coming = any(trip.reading for trip in self._trips)
        ready = selector.select(1.0)
        self._count(clogged, coming)
        for key, mask in ready:
            if key.data is None:
                os.read(self._wake, 4096)
            elif mask & selectors.EVENT_READ:
                self._receive(key.data)
        for trip in self._trips:
            self._progress += trip.flush()
            mask = selectors.EVENT_READ | (selectors.EVENT_WRITE if trip.stream.clogged else 0)
            if mask != trip.watching:
                trip.watching = mask
                selector.modify(trip.stream, mask, trip)
        self._count(True, False)

    def _count(self, out: bool, coming: bool) -> None:
        """What was done since this was last asked, as far as somebody waited for it."""
        began, self._counted = max(self._counted, self._since), time.monotonic()
        seconds = max(0.0, self._counted - began)
        if out:
            self._out += seconds
        elif coming:
            self._in += seconds

    def _receive(self, trip: Trip) -> None:
        server = self._trips.index(trip)

        def place(frame: Frame) -> memoryview:
            # Looked up when a header is here: an answer to a round comes after it has begun.
            return _target(self._targets[server], self._due[server], frame, trip.line.peer)

        while (frame := trip.read(place)) is not None:
            self._answers.append(Answer(server, frame))
            self._left -= 1
            self._count(False, True)
            if not self._left:
                self._all_here.set()
            trip.flush()
        self._count(False, True)
        self._progress += 1


def _target(blocks: Sequence[memoryview], due: set[int], frame: Frame, peer: str) -> memoryview:
    """Where an answer's parameters go; one that was not asked for is refused."""
    if frame.kind not in (Kind.STATE, Kind.LATE) or frame.block not in due:
        raise WireError(f"{peer} sent a frame of kind {frame.kind} for block {frame.block}.")
    target = blocks[frame.block]
    if frame.length != len(target):
        raise WireError(f"{peer} sent {frame.length} bytes where {len(target)} were due.")
    due.remove(frame.block)
    return target
