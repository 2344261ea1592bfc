"""A real server in a thread and peers of every kind: good, slow, half-dead, and strangers."""

from __future__ import annotations

import contextlib
import os
import resource
import selectors
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from paceline.errors import PeerLost, WireError
from paceline.exchange.gates import make_gate
from paceline.server import connection
from paceline.server.desk import Desk
from paceline.server.rules import Hyper, make_rule
from paceline.server.serve import serve
from paceline.server.tally import Tally
from paceline.transport import auth
from paceline.transport.frames import HEADER_BYTES, Frame, Kind, pack, unpack
from paceline.transport.memory import raw
from paceline.transport.sockets import Line, listen
from paceline.types import Traffic

pytestmark = pytest.mark.timeout(30)

SECRET = b"s" * 32
SIZE = 3


class Server:
    def __init__(self, gate: str, workers: int, size: int = SIZE, **options: int) -> None:
        self.tally = Tally()
        self.desk = Desk(
            size,
            workers,
            lambda: make_gate(gate, workers),
            lambda count: make_rule("sgd", count, Hyper()),
            self.tally,
            **options,
        )
        listener, self.address = listen("127.0.0.1:0")
        self._wake, self._poke = os.pipe()
        self._over = threading.Event()
        self._thread = threading.Thread(
            target=serve,
            args=(listener, self.desk, SECRET, self.tally, self._over.is_set, self._wake, 0.02),
            daemon=True,
        )
        self._thread.start()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def socket(self) -> socket.socket:
        host, _, port = self.address.rpartition(":")
        sock = socket.create_connection((host, int(port)), timeout=5)
        sock.settimeout(5)
        return sock

    def line(self, secret: bytes = SECRET) -> Line:
        return Line.connect(self.address, "server-0", secret)

    def trusted(self) -> socket.socket:
        """A bare socket that has proved the secret."""
        sock = self.socket()
        sent, expected = auth.answer(SECRET, take(sock, auth.NONCE_BYTES))
        sock.sendall(sent)
        assert take(sock, auth.PROOF_BYTES) == expected
        return sock

    def end(self) -> None:
        self._over.set()
        os.write(self._poke, b"x")
        self._thread.join(5)
        for fd in (self._wake, self._poke):
            os.close(fd)


def take(sock: socket.socket, count: int) -> bytes:
    got = bytearray()
    while len(got) < count:
        more = sock.recv(min(count - len(got), 1 << 20))
        assert more, "closed too early"
        got += more
    return bytes(got)


def rest(sock: socket.socket) -> bytes:
    """All that comes until the other end hangs up."""
    got = b""
    try:
        while more := sock.recv(1 << 16):
            got += more
    except ConnectionResetError:
        pass
    return got


@pytest.fixture
def server() -> Iterator[Server]:
    one = Server("at-once", 2)
    yield one
    assert one.alive, "the server did not survive"
    one.end()


def init(line: Line, values: torch.Tensor) -> None:
    line.send(Frame(Kind.INIT, 0, length=values.nbytes), raw(values))


def pull(line: Line, worker: int, size: int = SIZE) -> torch.Tensor:
    line.send(Frame(Kind.PULL, worker))
    return state(line, size)


def state(line: Line, size: int = SIZE) -> torch.Tensor:
    values = torch.empty(size)
    line.fill(raw(values), line.receive().length)
    return values


def push(line: Line, worker: int, sequence: int, values: torch.Tensor) -> None:
    line.send(Frame(Kind.PUSH, worker, sequence, 0, 1.0, 1.0, length=values.nbytes), raw(values))


def test_push_and_pull(server: Server) -> None:
    one, two = server.line(), server.line()
    init(one, torch.zeros(SIZE))
    push(one, 0, 1, torch.full((SIZE,), -2.0))
    assert torch.equal(state(one), torch.full((SIZE,), 2.0))
    assert torch.equal(pull(two, 1), torch.full((SIZE,), 2.0))
    assert one.counts.sent == 2 * (HEADER_BYTES + SIZE * 4)
    assert one.counts.received == HEADER_BYTES + SIZE * 4
    one.close()
    two.close()


def test_a_stranger_is_refused_before_anything_is_read(server: Server) -> None:
    friend = server.line()
    init(friend, torch.ones(SIZE))
    stranger = server.socket()
    take(stranger, auth.NONCE_BYTES)
    push_ = pack(Frame(Kind.PUSH, 1, 1, 0, 1.0, 1.0, length=SIZE * 4)) + b"\xff" * SIZE * 4
    stranger.sendall(bytes(auth.ANSWER_BYTES) + push_)
    said = rest(stranger)
    fault = unpack(said[:HEADER_BYTES])
    assert fault.kind == Kind.FAULT
    assert b"does not belong" in said[HEADER_BYTES:]
    assert server.desk.applied == 0
    assert torch.equal(pull(friend, 1), torch.ones(SIZE))


def test_a_line_with_another_secret_is_told_so(server: Server) -> None:
    with pytest.raises((WireError, PeerLost)):
        server.line(b"x" * 32)


def test_a_server_that_cannot_prove_itself_is_refused() -> None:
    """It reflects the client's own proof, the best it can do without the secret."""
    listener = socket.create_server(("127.0.0.1", 0))

    def pretend() -> None:
        sock, _ = listener.accept()
        sock.sendall(bytes(auth.NONCE_BYTES))
        sock.sendall(take(sock, auth.ANSWER_BYTES)[auth.NONCE_BYTES :])
        sock.close()

    thread = threading.Thread(target=pretend, daemon=True)
    thread.start()
    with pytest.raises(WireError, match="server-0 could not prove"):
        Line.connect(f"127.0.0.1:{listener.getsockname()[1]}", "server-0", SECRET)
    thread.join(5)
    listener.close()


@pytest.mark.parametrize("words", [b"GET / HTTP/1.1\r\n\r\n", b"", b"\0" * 1000, b"\xff" * 65])
def test_garbage_instead_of_an_answer(server: Server, words: bytes) -> None:
    sock = server.socket()
    take(sock, auth.NONCE_BYTES)
    sock.sendall(words)
    with contextlib.suppress(OSError):  # it may have hung up already
        sock.shutdown(socket.SHUT_WR)
    rest(sock)
    good = server.line()
    init(good, torch.zeros(SIZE))
    assert torch.equal(pull(good, 0), torch.zeros(SIZE))


@pytest.mark.parametrize(
    "words",
    [
        b"garbage".ljust(HEADER_BYTES, b"!"),
        pack(Frame(Kind.PUSH, 0, 1, 0, 1.0, 1.0, length=SIZE * 4 + 4)),
        pack(Frame(Kind.PUSH, 9, 1, 0, 1.0, 1.0, length=SIZE * 4)),
        pack(Frame(Kind.STATE, 0)),
        pack(Frame(Kind.PUSH, 0, 1, 77, 1.0, 1.0, length=SIZE * 4)) + bytes(SIZE * 4),
    ],
)
def test_a_bad_frame_ends_that_connection_alone(server: Server, words: bytes) -> None:
    good, bad = server.line(), server.trusted()
    init(good, torch.zeros(SIZE))
    pull(good, 0)
    bad.sendall(words)
    said = rest(bad)
    assert unpack(said[:HEADER_BYTES]).kind == Kind.FAULT
    assert torch.equal(pull(good, 0), torch.zeros(SIZE))
    assert server.desk.applied == 0


def test_a_refused_line_raises_the_reason(server: Server) -> None:
    line = server.line()
    line.send(Frame(Kind.PULL, 9))
    with pytest.raises(PeerLost, match=r"server-0 refused: a frame names worker 9"):
        line.receive()


@pytest.mark.parametrize("cut", [1, HEADER_BYTES - 1, HEADER_BYTES, HEADER_BYTES + 5])
def test_half_a_frame_and_then_nothing(server: Server, cut: int) -> None:
    good, dying = server.line(), server.trusted()
    init(good, torch.zeros(SIZE))
    pull(good, 0)
    whole = pack(Frame(Kind.PUSH, 1, 1, 0, 1.0, 1.0, length=SIZE * 4)) + b"\x7f" * SIZE * 4
    dying.sendall(whole[:cut])
    dying.close()
    assert torch.equal(pull(good, 0), torch.zeros(SIZE))
    assert server.desk.applied == 0


def test_a_frame_in_single_bytes_is_a_frame(server: Server) -> None:
    good, slow = server.line(), server.trusted()
    init(good, torch.zeros(SIZE))
    pull(good, 0)
    slow.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for byte in pack(Frame(Kind.PULL, 1)):
        slow.sendall(bytes([byte]))
    assert unpack(take(slow, HEADER_BYTES)).kind == Kind.STATE


def test_a_slow_reader_holds_up_nobody() -> None:
    """It asks for far more than the sockets' buffers hold, and reads none of it."""
    size = 1 << 20
    one = Server("at-once", 2, size, block=size)
    good, slow = one.line(), one.trusted()
    init(good, torch.zeros(size))
    for _ in range(16):
        slow.sendall(pack(Frame(Kind.PULL, 1)))
    for sequence in (1, 2, 3):
        push(good, 0, sequence, torch.full((size,), -1.0))
        assert state(good, size)[0] == sequence
    assert one.alive
    slow.close()
    assert pull(good, 0, size)[0] == 3
    one.end()


def test_a_peer_that_asks_and_never_reads_is_let_go() -> None:
    """Its answers are kept as copies, since others go on: some of them, but not all it asks for."""
    size = 1 << 18
    one = Server("at-once", 2, size)
    good, slow = one.line(), one.trusted()
    init(good, torch.zeros(size))
    pull(good, 0, size)
    with contextlib.suppress(OSError):  # it may have hung up already
        slow.sendall(pack(Frame(Kind.PULL, 1)) * 300)
    assert pull(good, 0, size)[0] == 0
    assert len(rest(slow)) < 30 * size * 4
    one.end()


def test_a_peer_that_never_stops_asking_has_its_turn_and_no_more() -> None:
    """As many frames as the socket holds, and one look at it."""

    class Count:
        handled = 0

        def target(self, peer: connection.Connection, frame: Frame) -> None:
            pass

        def handle(self, peer: connection.Connection, frame: Frame) -> None:
            self.handled += 1

    ours, theirs = socket.socketpair()
    count = Count()
    with selectors.DefaultSelector() as selector:
        peer = connection.Connection(theirs, selector, SECRET, Tally())
        ours.sendall(auth.answer(SECRET, take(ours, auth.NONCE_BYTES))[0])
        ours.sendall(pack(Frame(Kind.PULL, 0)) * 500)
        peer.ready(selectors.EVENT_READ, count)
        assert 0 < count.handled <= connection.FRAMES
        for _ in range(500 // connection.FRAMES + 1):
            peer.ready(selectors.EVENT_READ, count)
        assert count.handled == 500
        peer.close()
    ours.close()


def test_an_answer_is_of_one_version_however_slowly_it_is_read() -> None:
    """Answers of two large blocks are under way while others change both."""
    size = 1 << 21
    one = Server("at-once", 2, size, block=size // 2)
    good, slow = one.line(), one.trusted()
    for block in (0, 1):
        half = torch.zeros(size // 2)
        good.send(Frame(Kind.INIT, 0, block=block, length=half.nbytes), raw(half))
    good.send(Frame(Kind.PULL, 0))  # once this is answered, the parameters are there
    for _ in (0, 1):
        state(good, size // 2)
    asked = 3
    for _ in range(asked):
        slow.sendall(pack(Frame(Kind.PULL, 1)))
    for sequence in range(1, 5):
        for block in (0, 1):
            values = torch.full((size // 2,), -1.0)
            frame = Frame(
                *(Kind.PUSH, 0, sequence, sequence - 1, 1.0, 1.0), block=block, length=values.nbytes
            )
            good.send(frame, raw(values))
            state(good, size // 2)
    for _ in range(2 * asked):
        frame = unpack(take(slow, HEADER_BYTES))
        values = torch.frombuffer(bytearray(take(slow, frame.length)), dtype=torch.float32)
        assert set(values.unique().tolist()) == {float(frame.version)}
    one.end()


def test_who_waits_at_the_gate_when_it_closes_its_line_harms_nobody() -> None:
    one = Server("all", 2)
    good, gone = one.line(), one.line()
    init(good, torch.zeros(SIZE))
    pull(good, 0)
    push(gone, 1, 1, torch.full((SIZE,), -3.0))
    gone.close()
    push(good, 0, 1, torch.full((SIZE,), -1.0))
    assert torch.equal(state(good), torch.full((SIZE,), 2.0))
    assert one.alive
    one.end()


def test_a_stranger_that_says_nothing_is_let_go(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "INTRODUCTION_SECONDS", 0.1)
    silent = server.socket()
    assert len(rest(silent)) == auth.NONCE_BYTES


FLOOD = """
import resource, socket, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import torch
from test_server_serve import Server, init, pull, SIZE
one = Server("at-once", 2)
good = one.line()
init(good, torch.zeros(SIZE))
open_now = len(list(Path("/proc/self/fd").iterdir()))
peer = one.socket()
resource.setrlimit(resource.RLIMIT_NOFILE, (open_now + 3, open_now + 3))
strangers = [peer]
try:
    while True:
        strangers.append(one.socket())
except OSError:
    pass
assert torch.equal(pull(good, 0), torch.zeros(SIZE))
assert one.alive
print("still there")
"""


def test_no_descriptor_left_for_a_stranger_is_no_reason_to_die() -> None:
    """Both ends are in one process here, so that its limit is met from either side."""
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 64
    here = os.path.dirname(__file__)  # noqa: PTH120
    told = subprocess.run(
        [sys.executable, "-c", FLOOD, here], capture_output=True, text=True, timeout=25, check=False
    )
    assert told.stdout == "still there\n", told.stderr


def test_an_answer_of_another_length_is_refused(server: Server) -> None:
    line = server.line()
    init(line, torch.zeros(SIZE))
    line.send(Frame(Kind.PULL, 0))
    with pytest.raises(WireError, match=r"server-0 sent 12 bytes where 8 were due"):
        line.fill(raw(torch.empty(2)), line.receive().length)


def test_a_closed_server_is_noticed_at_once() -> None:
    one = Server("at-once", 1)
    line = one.line()
    one.end()
    with pytest.raises(PeerLost, match="server-0"):
        line.receive()


def test_a_server_that_is_not_there_is_named() -> None:
    listener, address = listen("127.0.0.1:0")
    listener.close()
    with pytest.raises(PeerLost, match=f"cannot reach server-3 at {address}"):
        Line.connect(address, "server-3", SECRET)


def test_the_tally_counts_what_went_through(server: Server, eventually: Callable[..., Any]) -> None:
    line = server.line()
    init(line, torch.zeros(SIZE))
    pull(line, 0)
    push(line, 0, 1, torch.ones(SIZE))
    state(line)
    introduced = auth.NONCE_BYTES + auth.PROOF_BYTES
    eventually(lambda: server.tally.sent == introduced + line.counts.received, 5)
    eventually(lambda: server.tally.received == auth.ANSWER_BYTES + line.counts.sent, 5)
    assert server.desk.applied == 1


def test_the_tally_knows_who_was_who(server: Server, eventually: Callable[..., Any]) -> None:
    """By what each says first. One that never says who it is has no name, and counts all the
    same."""
    one, two = server.line(), server.line()
    init(one, torch.zeros(SIZE))
    pull(one, 0)
    pull(two, 1)
    push(two, 1, 1, torch.ones(SIZE))
    state(two)
    server.trusted().close()
    introduced = auth.NONCE_BYTES + auth.PROOF_BYTES

    def told() -> dict[str, Traffic]:
        return {each.peer: each for each in server.tally.traffic()}

    for name, line in (("worker-0", one), ("worker-1", two)):
        counts = line.counts
        eventually(lambda name=name, c=counts: told()[name].sent == c.received + introduced, 5)
        assert told()[name].received == counts.sent + auth.ANSWER_BYTES
        assert told()[name].messages_sent == counts.messages_received
        assert told()[name].messages_received == counts.messages_sent
    assert set(told()) == {"worker-0", "worker-1"}
    eventually(lambda: not server.tally.strangers, 5)
    named = sum(each.received for each in server.tally.traffic())
    assert server.tally.received == named + auth.ANSWER_BYTES


def test_another_line_of_a_worker_counts_with_the_first(server: Server) -> None:
    first = server.line()
    init(first, torch.zeros(SIZE))
    pull(first, 0)
    first.close()
    second = server.line()
    pull(second, 0)
    (told,) = server.tally.traffic()
    assert told.messages_received == 3
    assert told.messages_sent == 2
