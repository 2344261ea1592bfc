"""A standby's loop: take what its server sends, say that it is there.

    server ──BASE, APPLY──► shadow ──ACK──► server

A line that breaks is made again, and then begins with bases. Whether the server is gone, and who
takes over, is not decided here.
"""

from __future__ import annotations

import selectors
import time
from collections.abc import Callable

from paceline.errors import PeerLost, WireError
from paceline.server.shadow import Shadow
from paceline.server.tally import Tally
from paceline.transport.frames import HEADER_BYTES, Frame, Kind, pack
from paceline.transport.sockets import Line
from paceline.transport.trip import Trip

AGAIN = 0.05  # seconds until a server that cannot be reached is tried again
FRAMES = 64  # taken before the supervisor is listened to again


def follow(
    shadow: Shadow,
    connect: Callable[[], Line],
    life: int,
    tally: Tally,
    tick: Callable[[], bool],
    tell: Callable[[str], None],
    wake: int,
    every: float = 0.2,
) -> None:
    """Follow until `tick` says to end: it is called every `every` seconds, and when `wake` stirs.

    `life` is how often this standby was started again; `tell` takes a sentence on why it follows
    nobody just now.
    """
    trip: Trip | None = None
    selector = selectors.DefaultSelector()
    selector.register(wake, selectors.EVENT_READ)
    next_tick, watch = 0.0, tally.watch
    while True:
        if trip is None:
            try:
                trip = _meet(connect, life)
                selector.register(trip.stream, trip.watching, trip)
            except (PeerLost, WireError) as wrong:
                tell(str(wrong))
        watch.at("receive" if trip is not None and trip.reading else "idle")
        ready = selector.select(every if trip is not None else AGAIN)
        watch.at("receive")
        watch.row()
        for key, _ in ready:
            if key.data is None:
                next_tick = 0.0
            elif trip is not None:
                try:
                    _hear(trip, shadow, selector, tally)
                except (PeerLost, WireError) as wrong:
                    selector.unregister(trip.stream)
                    trip.line.close()
                    trip = None
                    tell(str(wrong))
        watch.at("other")
        now = time.perf_counter()
        if now >= next_tick:
            next_tick = now + every
            if tick():
                break
    if trip is not None:
        trip.line.close()
    selector.close()


def _meet(connect: Callable[[], Line], life: int) -> Trip:
    trip = Trip(connect())
    try:
        trip.stream.queue(memoryview(pack(Frame(Kind.FOLLOW, 0, life))))
        trip.flush()
    except PeerLost:
        trip.line.close()
        raise
    return trip


def _hear(trip: Trip, shadow: Shadow, selector: selectors.BaseSelector, tally: Tally) -> None:
    """Take what is here, a little at a time: the supervisor wants to be heard too."""
    frames, watch = 0, tally.watch
    trip.flush()
    while frames < FRAMES or trip.stream.waiting:
        if (frame := trip.read(shadow.place)) is None:
            break
        frames += 1
        # What is here whole will be in whatever this standby becomes: workers need not wait longer.
        ack = Frame(Kind.ACK, 0, version=frame.version, block=frame.block)
        trip.stream.queue(memoryview(pack(ack)))
        watch.at("send")
        trip.flush()
        watch.at("apply")
        shadow.take(frame)
        watch.at("receive")
    trip.line.counts.sent += frames * HEADER_BYTES
    trip.line.counts.messages_sent += frames
    mask = selectors.EVENT_READ | (selectors.EVENT_WRITE if trip.stream.clogged else 0)
    if mask != trip.watching:
        trip.watching = mask
        selector.modify(trip.stream, mask, trip)
