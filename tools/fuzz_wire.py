"""A server's desk and connections inside one process, told anything, and what must come of it.

`Reference` says what a server should hold after the same bytes. It shares with the server only the
gates and codecs, which have tests of their own; it reads frames, counts replays and applies
gradients by itself, in the plainest way.
"""

from __future__ import annotations

import math
import selectors
import socket
import struct
from array import array
from dataclasses import dataclass
from random import Random

import numpy as np
import torch
from torch import Tensor

from paceline.errors import WireError
from paceline.exchange.codecs.make import make_codec
from paceline.exchange.gates import make_gate
from paceline.server.connection import Connection
from paceline.server.desk import Desk
from paceline.server.follower import Tell
from paceline.server.gate import Push
from paceline.server.kept import Kept
from paceline.server.rules import Hyper, make_rule
from paceline.server.shards import Sizes, blocks
from paceline.server.tally import Tally
from paceline.transport import auth
from paceline.transport.frames import HEADER_BYTES, LEAVE, Frame, Kind, pack
from tools.fuzz_pipes import Pipe, Selector
from tools.fuzz_rows import ABOUT_ROWS, TABLES, Rows, a_store, rows_frames
from tools.fuzz_standby import Standby, Wrong, held

SECRET = bytes(range(32))
SIZE, BLOCK, WORKERS = 40, 16, 3
HEADER = struct.Struct("<2sBBIQQddIIQIIdI")
GATES = (("at-once", 0, 0), ("all", 0, 0), ("all", 0, 1), ("bounded", 2, 0))
CODECS = ("none", "none", "bf16", "int8", "topk:0.2", "onebit")


@dataclass(frozen=True)
class Setup:
    gate: str
    bound: int
    backup: int
    codec: str
    followed: bool = False  # by a standby
    kept: bool = False  # what it holds, for a successor
    tables: bool = False  # sparse ones, which have no standby

    @classmethod
    def any(cls, rng: Random) -> Setup:
        followed = rng.random() < 0.5
        tables = not followed and rng.random() < 0.5
        return cls(*rng.choice(GATES), rng.choice(CODECS), followed, rng.random() < 0.5, tables)

    def desk(self, tell: Tell | None) -> Desk:
        return Desk(
            SIZE,
            WORKERS,
            lambda: make_gate(self.gate, WORKERS, self.bound, self.backup),
            lambda size: make_rule("sgd", size, Hyper()),
            Tally(),
            block=BLOCK,
            codec=None if self.codec == "none" else make_codec(self.codec),
            tell=tell,
            kept=self._memory() if self.kept else None,
            tables=a_store() if self.tables else None,
        )

    def _memory(self) -> Kept:
        sizes = Sizes.of(SIZE, BLOCK, 0, WORKERS)
        words = memoryview(array("q", [0] * sizes.words))
        return Kept(torch.zeros(2, SIZE), torch.zeros(2, 0, SIZE), words)


class Reader:
    """What was said on one connection and not yet understood."""

    def __init__(self) -> None:
        self.rest = b""
        self.refused = False


class Reference:
    def __init__(self, setup: Setup) -> None:
        self.backup = setup.backup
        self.codec = None if setup.codec == "none" else make_codec(setup.codec)
        self.spans = blocks(SIZE, BLOCK)
        self.params = torch.zeros(SIZE)
        self.gates = [make_gate(setup.gate, WORKERS, setup.bound, setup.backup) for _ in self.spans]
        self.ready = [False] * len(self.spans)
        self.version = [0] * len(self.spans)
        self.done: list[dict[int, int]] = [{} for _ in self.spans]
        self.waiting: list[dict[int, int]] = [{} for _ in self.spans]
        self.grads: list[dict[int, Tensor]] = [{} for _ in self.spans]
        self.lines: dict[int, Reader] = {}
        self.rows = Rows() if setup.tables else None

    def width(self, block: int) -> int:
        return self.spans[block].stop - self.spans[block].start

    def feed(self, reader: Reader, data: bytes) -> None:
        reader.rest += data
        while not reader.refused and len(reader.rest) >= HEADER_BYTES:
            magic, protocol, *fields = HEADER.unpack(reader.rest[:HEADER_BYTES])
            frame = Frame(*fields)
            if magic != b"PL" or protocol != 8 or not self._sound(reader, frame):
                reader.refused = True
                return
            end = HEADER_BYTES + frame.length
            if len(reader.rest) < end:
                return
            payload, reader.rest = reader.rest[HEADER_BYTES:end], reader.rest[end:]
            if not self._act(frame, payload):
                reader.refused = True

    def _sound(self, reader: Reader, f: Frame) -> bool:
        """Whether this header may be read on from."""
        if f.sender >= WORKERS:
            return False
        if f.kind in ABOUT_ROWS:
            return self._of_rows(reader, f)
        if f.block >= len(self.spans):
            return False
        if f.kind == Kind.INIT:
            return f.length == 4 * self.width(f.block)
        if f.kind == Kind.PUSH:
            return (
                self._possible(f)
                and self._fits(f)
                and self._has_rows(f)
                and held_by(self.lines, reader, f.sender)
            )
        # Nobody was started again here.
        known = f.kind == Kind.LEAVE or (f.kind == Kind.PULL and not f.sequence)
        return known and f.length == 0

    def _of_rows(self, reader: Reader, f: Frame) -> bool:
        if self.rows is None or not self.rows.fits(f):
            return False
        asks = f.kind in (Kind.FETCH, Kind.USED)
        return held_by(self.rows.asking if asks else self.lines, reader, f.sender)

    def _possible(self, f: Frame) -> bool:
        return (
            self.ready[f.block]
            # Of workers in step another block may be ahead of this one.
            and f.version <= self.version[f.block] + self.gates[f.block].ahead
            and f.sequence < 2**63
            and self.waiting[f.block].get(f.sender, f.sequence) == f.sequence
            and 0 <= f.weight <= 1e30
            and abs(f.lr) <= 1e30
            and 0 <= f.seconds <= 1e30
        )

    def _has_rows(self, f: Frame) -> bool:
        """Of a push that changes tables too."""
        if self.rows is None or f.block or not f.weight or self._known(f):
            return True
        sequence, found = self.rows.left.get(f.sender, (-1, []))
        return sequence == f.sequence and len(found) == len(TABLES)

    def _fits(self, f: Frame) -> bool:
        if f.weight == 0:
            return f.length == 0
        if self.codec is not None:
            return 0 < f.length <= self.codec.room(self.width(f.block))
        return f.length == 4 * self.width(f.block)

    def _act(self, f: Frame, payload: bytes) -> bool:
        b = f.block
        if f.kind in ABOUT_ROWS and self.rows is not None:
            known = self.ready[0] if f.kind == Kind.FILL else self._known(f._replace(block=0))
            return self.rows.act(f, payload, known)
        if f.kind == Kind.INIT:
            if not self.ready[b]:
                self.params[self.spans[b]] = floats(payload)
                self.ready[b] = True
        elif f.kind == Kind.LEAVE:
            for block, gate in enumerate(self.gates):
                if not gate.holds:
                    self.waiting[block].pop(f.sender, None)
                self._decided(block, gate.leave(f.sender))
        elif f.kind == Kind.PUSH and not self._known(f):
            if f.weight > 0:
                grad = self._decoded(payload, self.width(b))
                if grad is None:
                    return False
                self.grads[b][f.sender] = grad
            self.waiting[b][f.sender] = f.sequence
            push = Push(*f[1:6], f.begin, f.seconds, last=bool(f.asked & LEAVE))
            self._decided(b, self.gates[b].push(push))
        return True

    def _known(self, f: Frame) -> bool:
        return f.sender in self.waiting[f.block] or f.sequence <= self.done[f.block].get(
            f.sender, -1
        )

    def _decoded(self, payload: bytes, count: int) -> Tensor | None:
        if self.codec is None:
            return floats(payload)
        out = torch.empty(count)
        try:
            self.codec.decode(torch.frombuffer(bytearray(payload), dtype=torch.uint8), out)
        except WireError:
            return None
        return out

    def _decided(self, block: int, decision: object) -> None:
        apply, answer, drop, _ = decision  # type: ignore[misc]
        total, mean = 0.0, None
        if self.rows is not None and apply and not block:
            self.rows.apply([p for p in apply if p.weight > 0], apply[0].lr)
        for p in apply:
            self.done[block][p.worker] = p.sequence
            if p.weight > 0:
                grad = self.grads[block].pop(p.worker)
                total += p.weight
                mean = grad if mean is None else torch.lerp(mean, grad, p.weight / total)
        if apply:
            self.version[block] += 1
        if mean is not None:
            part = self.params[self.spans[block]]
            part.copy_(torch.add(part, mean, alpha=-apply[0].lr))
        for worker in drop:
            self.done[block][worker] = self.waiting[block][worker]
        for worker in (*answer, *drop):
            self.waiting[block].pop(worker)


def held_by(holders: dict[int, Reader], reader: Reader, worker: int) -> bool:
    """Whether this connection is the one that speaks for a worker, from now on."""
    holder = holders.get(worker)
    if holder is None or holder.refused:
        holders[worker] = holder = reader
    return holder is reader


def floats(data: bytes) -> Tensor:
    return torch.frombuffer(bytearray(data), dtype=torch.float32)


class Stand:
    """The real thing beside the reference, told the same.

    `room` is how many bytes of answers go at once; None has them go through sockets.
    """

    def __init__(self, setup: Setup, room: int | None = None) -> None:
        self.room = room
        self.reference = Reference(setup)
        self.selector = Selector()
        self.desk = setup.desk(self._told if setup.followed else None)
        self.desk.params.zero_()
        self.said: list[bytes] = []
        self.standby = None
        if setup.followed:
            self.standby = Standby(self.desk, setup.desk(None), WORKERS, self.selector, SECRET)

    def _told(self, kind: str, number: int, life: int) -> None:
        """As a supervisor would."""
        if kind == "alone":
            self.desk.permit(number)

    def compare(self) -> None:
        """Nothing but what the reference took has changed anything."""
        real, due = held(self.desk).numpy(), self.reference.params.numpy()
        if not np.array_equal(real, due, equal_nan=True):
            raise Wrong(f"parameters are {real.tolist()}, not {due.tolist()}")
        if self.reference.rows is not None:
            self.reference.rows.compare(self.desk)
        if [w.table.version for w in self.desk.windows] != self.reference.version:
            raise Wrong("versions differ")
        if self.standby is not None:
            self.standby.compare()

    def serves(self) -> None:
        """A good peer is still answered, with the right parameters."""
        if not all(self.reference.ready):
            return
        wire = Wire(self)
        if not wire.introduce(SECRET):
            raise Wrong("a good peer was refused")
        wire.say(pack(Frame(Kind.PULL, 0)))
        got = []
        for kind, payload in answers(wire.heard):
            if kind != Kind.STATE:
                raise Wrong(f"a good peer was told a frame of kind {kind}")
            got.append(floats(payload))
        wire.close()
        due = self.reference.params
        if not got or not np.array_equal(torch.cat(got).numpy(), due.numpy(), equal_nan=True):
            raise Wrong("a good peer got other parameters")


class Wire:
    """A peer's end of a connection that nothing but this drives."""

    def __init__(self, stand: Stand) -> None:
        self._stand = stand
        ends = socket.socketpair() if stand.room is None else Pipe.pair(stand.room)
        self._sock, theirs = ends
        self._sock.setblocking(False)
        self._tally = Tally()
        self._sent = 0
        self.heard = b""
        self.reader = Reader()
        self.connection = Connection(
            *(theirs, stand.selector, SECRET, self._tally)  # type: ignore[arg-type]
        )
        self.nonce = self._sock.recv(auth.NONCE_BYTES)

    def introduce(self, secret: bytes) -> bool:
        """Whether the server took us for one of its own."""
        answer, proof = auth.answer(secret, self.nonce)
        self.say(answer, trusted=False)
        accepted = self.heard == proof
        self.heard = b""
        return accepted

    def say(self, data: bytes, *, trusted: bool = True) -> None:
        """Send, have the server read all of it, and hear its answers."""
        self._stand.said.append(data)
        try:
            self._sock.sendall(data)
        except OSError:
            return
        self._sent += len(data)
        if trusted:
            self._stand.reference.feed(self.reader, data)
        connection = self.connection
        while not connection.closed and self._tally.received < self._sent:
            self._turn(selectors.EVENT_READ)
        if self._stand.standby is not None:
            self._stand.standby.follow()
        try:
            while more := self._sock.recv(1 << 16):
                self.heard += more
                self._turn(selectors.EVENT_WRITE)
        except OSError:
            pass

    def _turn(self, mask: int) -> None:
        """As `serve` does."""
        if self.connection.closed:
            return
        try:
            self.connection.ready(mask, self._stand.desk)
        except WireError as wrong:
            self.connection.refuse(str(wrong))
        self._stand.desk.tend()

    def check(self) -> None:
        if self.connection.closed != self.reader.refused:
            verb = "closed" if self.connection.closed else "kept open"
            raise Wrong(f"a connection was {verb} that should not have been: {self.heard[-200:]!r}")
        for kind, _ in answers(self.heard):
            if kind not in (Kind.STATE, Kind.LATE, Kind.FAULT, Kind.ROWS):
                raise Wrong(f"a server answered with a frame of kind {kind}")
        self.heard = b""

    def close(self) -> None:
        self._sock.close()
        self.reader.refused = True
        self._turn(selectors.EVENT_READ)
        if not self.connection.closed:
            raise Wrong("a peer that is gone was not noticed")


def answers(heard: bytes) -> list[tuple[int, bytes]]:
    """What a server sent, as kinds and payloads; a last frame may be cut by its hanging up."""
    found = []
    while len(heard) >= HEADER_BYTES:
        magic, _, *fields = HEADER.unpack(heard[:HEADER_BYTES])
        kind, length = fields[0], Frame(*fields).length
        if magic != b"PL":
            raise Wrong("an answer is not a frame")
        found.append((kind, heard[HEADER_BYTES : HEADER_BYTES + length]))
        heard = heard[HEADER_BYTES + length :]
    return found


# What to say.

COUNTS = (0, 1, 2, 3, 7, 255, 2**16, 2**31 - 1, 2**31, 2**32 - 1)
LONG = (*COUNTS, 2**32, 2**39, 2**40, 2**40 + 1, 2**63 - 1, 2**63, 2**64 - 1)
NUMBERS = (0.0, -0.0, 1.0, -1.0, 1e-300, 1e30, 1e31, 1e39, 1e308, math.inf, -math.inf, math.nan)
CHOICES = {
    "kind": (*range(18), 255),
    **dict.fromkeys(("sender", "staleness", "block", "begin", "end", "asked"), COUNTS),
    **dict.fromkeys(("sequence", "version", "length"), LONG),
    **dict.fromkeys(("weight", "lr", "seconds"), NUMBERS),
}
NOISE = torch.randn(4096, generator=torch.Generator().manual_seed(0))
KINDS = [Kind.PUSH] * 16 + [Kind.PULL] * 4 + [Kind.INIT] * 2
KINDS += [Kind.LEAVE, Kind.STATE, Kind.LATE, Kind.FOLLOW, Kind.BASE, Kind.APPLY, Kind.ACK]
KINDS += ABOUT_ROWS * 2


HOW = ("good", "field", "flip", "replay", "noise", "length", "splice", "half")
WEIGHTS = (25, 20, 15, 10, 10, 10, 5, 5)


class Mouth:
    """Frames good and bad, for a reference in the state it is in."""

    def __init__(self, rng: Random, reference: Reference) -> None:
        self._rng = rng
        self._reference = reference
        self._past: list[bytes] = [b""]

    def good(self, kind: Kind | None = None, block: int | None = None) -> tuple[Frame, bytes]:
        rng, ref = self._rng, self._reference
        kind = rng.choice(KINDS) if kind is None else kind
        block = rng.randrange(len(ref.spans)) if block is None else block
        sender = rng.randrange(WORKERS)
        if kind == Kind.INIT:
            payload = self._values(block).numpy().tobytes()
            return Frame(kind, 0, block=block, length=len(payload)), payload
        if kind in ABOUT_ROWS:
            name = ref.waiting[0].get(sender, ref.done[0].get(sender, 0) + 1)
            return rng.choice(rows_frames(rng, kind, sender, min(2**63 - 1, name)))
        if kind != Kind.PUSH:
            return Frame(kind, sender), b""
        last = ref.waiting[block].get(sender, min(2**63 - 1, ref.done[block].get(sender, 0) + 1))
        version = max(0, ref.version[block] - (rng.random() < 0.2))
        weight = float(rng.choice((0, 1, 1, 2, 32)))
        payload = self._gradient(block) if weight else b""
        frame = Frame(kind, sender, last, version, weight, 0.1, block=block, length=len(payload))
        return frame, payload

    def _values(self, block: int) -> Tensor:
        at = self._rng.randrange(len(NOISE) - BLOCK)
        return NOISE[at : at + self._reference.width(block)]

    def _gradient(self, block: int) -> bytes:
        values, codec = self._values(block), self._reference.codec
        if codec is None:
            return values.numpy().tobytes()
        out = torch.empty(codec.room(len(values)), dtype=torch.uint8)
        return out[: codec.encode(values, out)].numpy().tobytes()

    def anything(self) -> tuple[bytes, bool]:
        """Some bytes, and whether more may follow them: not after half a frame."""
        rng, past = self._rng, self._past
        frame, payload = self.good()
        rows = b""  # that have to go before it
        if self._reference.rows is not None and frame.kind == Kind.PUSH and not frame.block:
            said = rows_frames(rng, Kind.ROWS, frame.sender, frame.sequence)
            rows = b"".join(pack(header) + content for header, content in said)
        whole = rows + pack(frame) + payload
        how = rng.choices(HOW, WEIGHTS)[0]
        match how:
            case "noise":
                whole = rng.randbytes(rng.randrange(1, 300))
            case "replay":
                whole = rng.choice(past)
            case "field":
                name = rng.choice(tuple(CHOICES))
                whole = rows + pack(frame._replace(**{name: rng.choice(CHOICES[name])})) + payload
            case "length":
                off = max(0, frame.length + rng.choice((-4, -1, 1, 4)))
                whole = rows + pack(frame._replace(length=off)) + payload.ljust(off, b"\0")[:off]
            case "flip":
                whole = self._flipped(whole)
            case "splice":
                other = rng.choice(past)
                whole = whole[: rng.randrange(len(whole))] + other[rng.randrange(len(other) + 1) :]
            case "half":
                whole = whole[: rng.randrange(len(whole))]
            case _:
                self._past = [*past[-15:], whole]
        return whole, how != "half"

    def _flipped(self, whole: bytes) -> bytes:
        damaged = bytearray(whole)
        for _ in range(self._rng.choice((1, 1, 2, 8))):
            damaged[self._rng.randrange(len(damaged))] ^= 1 << self._rng.randrange(8)
        return bytes(damaged)


# One bench: a new server, and some peers in turn.

PEERS = 30


def bench(rng: Random, stand: Stand) -> int:
    """How many frames were said; raises `Wrong`, or whatever a server should not."""
    mouth = Mouth(rng, stand.reference)
    frames = 0
    if rng.random() < 0.9:
        wire = Wire(stand)
        wire.introduce(SECRET)
        for block in range(len(stand.reference.spans)):
            frame, payload = mouth.good(Kind.INIT, block)
            wire.say(pack(frame) + payload)
        wire.close()
    for _ in range(PEERS):
        frames += (_stranger if rng.random() < 0.15 else _friend)(rng, stand, mouth)
        stand.compare()
    stand.serves()
    return frames


def _friend(rng: Random, stand: Stand, mouth: Mouth) -> int:
    wire = Wire(stand)
    if not wire.introduce(SECRET):
        raise Wrong("a good peer was refused")
    frames, more = 0, True
    while more and not wire.connection.closed and frames < 12:
        said, more = mouth.anything()
        cut = rng.randrange(len(said) + 1) if rng.random() < 0.2 else len(said)
        for part in (said[:cut], said[cut:]):
            if part and not wire.connection.closed:
                wire.say(part)
        wire.check()
        frames += 1
    wire.close()
    return frames


def _stranger(rng: Random, stand: Stand, mouth: Mouth) -> int:
    wire = Wire(stand)
    right, _ = auth.answer(SECRET, wire.nonce)
    stale, _ = auth.answer(SECRET, bytes(auth.NONCE_BYTES))
    wrong, _ = auth.answer(b"x" * 32, wire.nonce)
    flipped = bytearray(right)
    flipped[rng.randrange(len(right))] ^= 1 << rng.randrange(8)
    short = right[: rng.randrange(len(right) - 16)]  # not so long that what follows may complete it
    begin = rng.choice((stale, wrong, bytes(flipped), short, rng.randbytes(auth.ANSWER_BYTES)))
    frame, payload = mouth.good(Kind.PUSH)
    said = begin + pack(frame) + payload
    wire.say(said, trusted=False)
    if wire.connection.closed != (len(said) >= auth.ANSWER_BYTES):
        raise Wrong("a stranger was not refused")
    wire.close()
    return 1
