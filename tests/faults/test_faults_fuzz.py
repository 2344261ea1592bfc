"""Bytes of every kind against a server: it lives, holds what it should, and takes no memory.

The long version is `make fuzz`; this one is short, over real sockets, and shrinks what it finds.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import tracemalloc
from collections.abc import Iterator
from random import Random

import psutil
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from paceline.exchange.codecs.make import make_codec
from paceline.exchange.gates import make_gate
from paceline.server.desk import Desk
from paceline.server.rules import Hyper, make_rule
from paceline.server.serve import serve
from paceline.server.tally import Tally
from paceline.transport import auth
from paceline.transport.frames import HEADER_BYTES, MAX_PAYLOAD, Frame, Kind, pack
from paceline.transport.memory import raw
from paceline.transport.sockets import Line, listen
from tools.fuzz_wire import CODECS, GATES, SECRET, Mouth, Setup, Stand, Wire, bench

pytestmark = pytest.mark.timeout(90)

MANY = settings(
    deadline=None,
    max_examples=30,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
setups = st.builds(
    lambda gate, codec, followed, kept: Setup(*gate, codec, followed, kept),
    st.sampled_from(GATES),
    st.sampled_from(CODECS),
    st.booleans(),
    st.booleans(),
)
long = st.integers(0, 2**64 - 1) | st.integers(0, 5)
short = st.integers(0, 2**32 - 1) | st.integers(0, 3)
frames = st.builds(
    Frame,
    kind=st.integers(0, 255) | st.sampled_from(Kind),
    sender=short,
    sequence=long,
    version=long,
    weight=st.floats(),
    lr=st.floats(),
    staleness=short,
    begin=short,
    asked=short,
    end=short,
    block=short,
    seconds=st.floats(),
    length=long | st.integers(0, MAX_PAYLOAD) | st.sampled_from([32, 64]),
)
words = st.one_of(
    st.binary(max_size=200),
    st.builds(lambda frame, tail: pack(frame) + tail, frames, st.binary(max_size=80)),
)


# In one process, beside a reference.


@MANY
@given(setup=setups, seed=st.integers(0, 2**32), room=st.sampled_from([None, 40, 1 << 20]))
def test_damaged_frames_do_what_they_should_and_no_more(
    setup: Setup, seed: int, room: int | None
) -> None:
    bench(Random(seed), Stand(setup, room))


@MANY
@given(setup=setups, said=st.lists(words, max_size=12), secret=st.booleans())
def test_anything_at_all(setup: Setup, said: list[bytes], secret: bool) -> None:
    """Trusted or not: what the reference does not take changes nothing."""
    stand = Stand(setup)
    begun(stand)
    wire = Wire(stand)
    trusted = wire.introduce(SECRET if secret else b"x" * 32)
    assert trusted == secret
    for some in said:
        if some and not wire.connection.closed:
            wire.say(some, trusted=trusted)
            if trusted:
                wire.check()
    if not secret:
        assert wire.connection.closed
    wire.close()
    stand.compare()
    stand.serves()


def begun(stand: Stand) -> None:
    """A server whose parameters are there."""
    mouth = Mouth(Random(0), stand.reference)
    wire = Wire(stand)
    assert wire.introduce(SECRET)
    for block in range(len(stand.reference.spans)):
        frame, payload = mouth.good(Kind.INIT, block)
        wire.say(pack(frame) + payload)
    wire.check()
    wire.close()


@pytest.mark.parametrize("codec", sorted(set(CODECS)))
@pytest.mark.parametrize("length", [1 << 20, 1 << 32, MAX_PAYLOAD, MAX_PAYLOAD + 1, 2**64 - 1])
def test_a_length_is_checked_before_anything_is_allocated(codec: str, length: int) -> None:
    stand = Stand(Setup("at-once", 0, 0, codec))
    begun(stand)
    tracemalloc.start()
    try:
        for kind in range(max(Kind) + 2):
            for weight in (0.0, 1.0):
                wire = Wire(stand)
                assert wire.introduce(SECRET)
                wire.say(pack(Frame(kind, 0, 1, 0, weight, 1.0, length=length)) + bytes(64))
                assert wire.connection.closed
                wire.close()
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    stand.compare()


# A real server in a thread.

SIZE = 1000


class Server:
    def __init__(self, codec: str) -> None:
        self.codec = make_codec(codec)
        tally = Tally()
        self.desk = Desk(
            SIZE,
            3,
            lambda: make_gate("at-once", 3),
            lambda size: make_rule("sgd", size, Hyper()),
            tally,
            block=300,
            codec=None if codec == "none" else make_codec(codec),
        )
        listener, self.address = listen("127.0.0.1:0")
        self._wake, self._poke = os.pipe()
        self._over = threading.Event()
        self._thread = threading.Thread(
            target=serve,
            args=(listener, self.desk, SECRET, tally, self._over.is_set, self._wake, 0.05),
            daemon=True,
        )
        self._thread.start()
        self.good = Line.connect(self.address, "server-0", SECRET)
        for block, part in enumerate(torch.zeros(SIZE).split(300)):
            self.good.send(Frame(Kind.INIT, 0, block=block, length=part.nbytes), raw(part))
        self.sequence = 0
        self.due = torch.zeros(SIZE)

    def push(self) -> None:
        """A good peer's next gradient: it is applied, and answered."""
        self.sequence += 1
        gradient = torch.full((SIZE,), -1.0)
        got, blocks = [], gradient.split(300)
        for block, (part, due) in enumerate(zip(blocks, self.due.split(300), strict=True)):
            coded = torch.empty(self.codec.room(len(part)), dtype=torch.uint8)
            coded = coded[: self.codec.encode(part, coded)]
            decoded = torch.empty(len(part))
            self.codec.decode(coded, decoded)
            due.sub_(decoded)
            version = self.sequence - 1
            self.good.send(
                Frame(Kind.PUSH, 0, self.sequence, version, 1.0, 1.0, 0, block, len(coded)),
                raw(coded),
            )
            answer = torch.empty(len(part))
            self.good.fill(raw(answer), self.good.receive().length)
            got.append(answer)
        assert torch.equal(torch.cat(got), self.due)

    def end(self) -> None:
        alive = self._thread.is_alive()
        self._over.set()
        os.write(self._poke, b"x")
        self._thread.join(5)
        self.good.close()
        os.close(self._wake)
        os.close(self._poke)
        assert alive, "the server did not survive"


@pytest.fixture(scope="module", params=["none", "int8", "topk:0.01"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    one = Server(request.param)
    yield one
    one.end()


def tell(server: Server, data: bytes, secret: bytes | None) -> None:
    """Say it all, hear what comes, hang up; without a secret, in place of the introduction."""
    host, _, port = server.address.rpartition(":")
    with (
        contextlib.suppress(OSError),
        socket.create_connection((host, int(port)), timeout=5) as sock,
    ):
        nonce = sock.recv(auth.NONCE_BYTES, socket.MSG_WAITALL)
        if secret is not None:
            sock.sendall(auth.answer(secret, nonce)[0])
        sock.sendall(data)
        sock.shutdown(socket.SHUT_WR)
        while sock.recv(1 << 16):
            pass


# No push of these can be one: worker 0 is the good peer, and 2**64 - 1 is no version.
harmless = st.one_of(
    st.binary(max_size=300),
    frames.map(lambda f: pack(f._replace(kind=Kind.PUSH, version=2**64 - 1)) + bytes(64)),
    frames.map(lambda f: pack(f._replace(kind=Kind.INIT))),
    frames.map(lambda f: pack(f._replace(kind=f.kind % 256 | 8)) + bytes(8)),
    st.integers(0, HEADER_BYTES).map(lambda n: pack(Frame(Kind.PUSH, 1, 1, 0, 1.0, 1.0))[:n]),
)


@settings(parent=MANY, max_examples=40)
@given(said=harmless, who=st.sampled_from([SECRET, b"x" * 32, None]))
def test_a_good_peer_is_served_beside_a_bad_one(
    server: Server, said: bytes, who: bytes | None
) -> None:
    tell(server, said, who)
    server.push()
    assert torch.equal(server.desk.params, server.due)


def test_a_replay_of_all_that_a_good_peer_said_changes_nothing(server: Server) -> None:
    server.push()
    frame = Frame(Kind.PUSH, 0, server.sequence, 0, 0.0, 1.0)
    for sequence in (0, 1, server.sequence):
        tell(server, pack(frame._replace(sequence=sequence)) * 3, SECRET)
    tell(server, pack(frame) * 3, b"x" * 32)
    server.push()
    assert torch.equal(server.desk.params, server.due)


def test_peers_that_come_and_go_leave_no_memory_behind(server: Server) -> None:
    """Half of them strangers, all with a frame that says it is a terabyte."""
    process = psutil.Process()
    huge = pack(Frame(Kind.PUSH, 1, 1, 0, 1.0, 1.0, length=1 << 40)) + bytes(64)
    for _ in range(20):
        tell(server, huge, SECRET)
    before = process.memory_info().rss
    for turn in range(200):
        tell(server, huge, SECRET if turn % 2 else None)
    assert process.memory_info().rss - before < 16 << 20
    server.push()
