"""The connecting end of a link: what a word there and back takes, and how much goes each way."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial

from paceline.diagnose.doctor.facts import Link
from paceline.doctor.sink import BLOCK
from paceline.errors import PeerLost, WireError
from paceline.measure.spread import percentile, spread
from paceline.transport.frames import Frame, Kind
from paceline.transport.sockets import Line

PIECES = 8
WARM = 50
AHEAD = 4  # blocks asked for before the first has come
PATIENCE = 10.0  # seconds
TRIAL = 1 << 18  # bytes, to see how many a round can have
SETTLING = 3  # trials
MOST = 1 << 30  # bytes a round


def measure_link(address: str, secret: bytes, seconds: float) -> Link:
    """Connect, prove the secret, and measure for about so long."""
    try:
        line = Line.connect(address, address, secret)
    except WireError:
        raise PeerLost(
            f"{address} does not know this secret: give both ends the same one, with "
            "PACELINE_SECRET or --secret-file."
        ) from None
    line.sock.settimeout(PATIENCE)
    try:
        return _measure(line, address, seconds)
    finally:
        line.close()


def _measure(line: Line, address: str, seconds: float) -> Link:
    room = memoryview(bytearray(BLOCK))
    for _ in range(WARM):
        _word(line)
    words = []
    for _ in range(PIECES):
        taken: list[float] = []
        until = time.perf_counter() + 0.3 * seconds / PIECES
        while not taken or time.perf_counter() < until:
            taken.append(_word(line))
        words.append(taken)
    turn = 0.7 * seconds / (2 * PIECES)
    moves = partial(_push, line, room), partial(_pull, line, room)
    counts = [_settled(move, turn) for move in moves]
    push, pull = zip(
        *([move(count) for move, count in zip(moves, counts, strict=True)] for _ in range(PIECES)),
        strict=True,
    )
    return Link(
        address=address,
        latency=spread([statistics.median(taken) for taken in words]),
        slowest=percentile([word for taken in words for word in taken], 0.99),
        push=spread(push),
        pull=spread(pull),
    )


def _word(line: Line) -> float:
    """Seconds of a word there and back."""
    began = time.perf_counter()
    line.send(Frame(Kind.PULL, 0))
    line.receive()
    return time.perf_counter() - began


def _push(line: Line, room: memoryview, count: int) -> float:
    """Bytes a second, until the other end has them all."""
    began = time.perf_counter()
    for size in _blocks(count):
        line.send(Frame(Kind.PUSH, 0, length=size), room[:size])
    line.send(Frame(Kind.PULL, 0))
    line.receive()
    return count / (time.perf_counter() - began)


def _pull(line: Line, room: memoryview, count: int) -> float:
    began = time.perf_counter()
    sizes = _blocks(count)
    for n in range(len(sizes) + AHEAD):
        if n < len(sizes):
            line.send(Frame(Kind.PULL, 0, sequence=sizes[n]))
        if n >= AHEAD:
            size = sizes[n - AHEAD]
            line.fill(room[:size], line.receive().length)
    return count / (time.perf_counter() - began)


def _blocks(count: int) -> list[int]:
    whole, rest = divmod(count, BLOCK)
    return [BLOCK] * whole + ([rest] if rest else [])


def _settled(move: Callable[[int], float], seconds: float) -> int:
    """How many bytes take about so long, in whole trials; connections are slow to start."""
    count = TRIAL
    for _ in range(SETTLING):
        count = min(MOST, max(TRIAL, round(move(count) * seconds / TRIAL) * TRIAL))
    return count
