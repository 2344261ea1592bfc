"""How frames go to servers and come back, at once or by a thread: the same, and so are failures."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from paceline.errors import PacelineError, PeerLost, WireError
from paceline.transport import courier as module
from paceline.transport import slate
from paceline.transport.courier import Courier, Direct, Mail
from paceline.transport.frames import HEADER_BYTES, Frame, Kind, pack, unpack
from paceline.transport.slate import Slate
from paceline.transport.sockets import Line

pytestmark = pytest.mark.timeout(30)

BLOCKS = 3
NBYTES = 8


class Peer:
    """A server's end of a line, which says what a test has it say."""

    def __init__(self, name: str) -> None:
        ours, self.sock = socket.socketpair()
        ours.settimeout(5)
        self.sock.settimeout(5)
        self.line = Line(ours, name)

    def answer(self, block: int, byte: bytes = b"a", kind: Kind = Kind.STATE, **more: int) -> None:
        frame = Frame(kind, 0, 1, 1, block=block, length=NBYTES)._replace(**more)
        self.sock.sendall(pack(frame) + byte * frame.length)

    def heard(self) -> tuple[Frame, bytes]:
        frame = unpack(self._take(HEADER_BYTES))
        return frame, self._take(frame.length)

    def _take(self, count: int) -> bytes:
        got = b""
        while len(got) < count:
            got += self.sock.recv(count - len(got))
        return got

    def close(self) -> None:
        self.sock.close()
        self.line.close()


class Post:
    """Two peers, one way to talk to them, and where their blocks go."""

    def __init__(self, how: Callable[[list[Line], Slate], Mail]) -> None:
        self.peers = [Peer("server-0"), Peer("server-1")]
        self.slate = Slate()
        self.mail = how([peer.line for peer in self.peers], self.slate)
        self.places = [[bytearray(NBYTES) for _ in range(BLOCKS)] for _ in self.peers]
        self.targets = [[memoryview(place) for place in places] for places in self.places]

    def begin(self) -> None:
        self.mail.begin(self.targets)

    def close(self) -> None:
        self.mail.close()
        for peer in self.peers:
            peer.close()


@pytest.fixture(params=[Direct, Courier])
def post(request: pytest.FixtureRequest) -> Iterator[Post]:
    one = Post(request.param)
    yield one
    one.close()


@pytest.fixture
def couriered() -> Iterator[Post]:
    one = Post(Courier)
    yield one
    one.close()


def test_blocks_in_any_order_come_to_their_places(post: Post) -> None:
    for turn in range(3):
        post.begin()
        for server in (1, 0):
            for block in (2, 0, 1):
                post.peers[server].answer(block, b"%d" % (server * BLOCKS + block + turn))
        answers = post.mail.collect()
        assert sorted((a.server, a.frame.block) for a in answers) == [
            (server, block) for server in (0, 1) for block in range(BLOCKS)
        ]
        flat = [bytes(place) for places in post.places for place in places]
        assert flat == [b"%d" % (n + turn) * NBYTES for n in range(2 * BLOCKS)]
    assert post.peers[0].line.counts.received == 3 * BLOCKS * (HEADER_BYTES + NBYTES)


def test_late_answers_are_answers(post: Post) -> None:
    post.begin()
    for peer in post.peers:
        for block in range(BLOCKS):
            peer.answer(block, kind=Kind.LATE)
    assert {answer.frame.kind for answer in post.mail.collect()} == {Kind.LATE}


def test_frames_are_sent_in_order_and_counted(post: Post) -> None:
    post.begin()
    for block in range(BLOCKS):
        payload = memoryview(bytes([block]) * 5)
        post.mail.send(1, Frame(Kind.PUSH, 0, block=block, length=5), payload)
    post.mail.send(1, Frame(Kind.PULL, 0))
    for block in range(BLOCKS):
        frame, payload_ = post.peers[1].heard()
        assert (frame.block, payload_) == (block, bytes([block]) * 5)
    assert post.peers[1].heard()[0].kind == Kind.PULL
    assert post.peers[1].line.counts.sent == 4 * HEADER_BYTES + 15
    assert post.peers[0].line.counts.sent == 0


def test_more_than_the_sockets_hold_goes_while_answers_come(couriered: Post) -> None:
    """Neither end reads before it has written: one that waited with the other would hang."""
    couriered.begin()
    payload = memoryview(bytes(4_000_000))
    for peer in range(2):
        couriered.mail.send(peer, Frame(Kind.PUSH, 0, length=len(payload)), payload)
    for peer in couriered.peers:
        for block in range(BLOCKS):
            peer.answer(block)
        assert len(peer.heard()[1]) == len(payload)
    assert len(couriered.mail.collect()) == 2 * BLOCKS


def failure(post: Post) -> PacelineError:
    with pytest.raises(PacelineError) as failed:
        post.mail.collect()
    return failed.value


def test_a_peer_that_closes(post: Post) -> None:
    post.begin()
    for block in range(BLOCKS):
        post.peers[0].answer(block)
    post.peers[1].answer(0)
    post.peers[1].sock.close()
    wrong = failure(post)
    assert isinstance(wrong, PeerLost)
    assert str(wrong) == "server-1 closed the connection."


def test_a_peer_that_closes_in_the_middle_of_a_block(post: Post) -> None:
    post.begin()
    post.peers[0].sock.sendall(pack(Frame(Kind.STATE, 0, length=NBYTES)) + b"abc")
    post.peers[0].sock.close()
    assert str(failure(post)) == "server-0 closed the connection."


def test_a_peer_that_closed_before_the_round_began(couriered: Post) -> None:
    couriered.peers[0].sock.close()
    couriered.mail._thread.join(5)  # type: ignore[attr-defined]
    couriered.begin()
    assert str(failure(couriered)) == "server-0 closed the connection."


def test_a_refusal_is_told_in_its_own_words(post: Post) -> None:
    text = b"the gate is shut."
    post.begin()
    post.peers[0].sock.sendall(pack(Frame(Kind.FAULT, 0, length=len(text))) + text)
    post.peers[0].sock.close()
    wrong = failure(post)
    assert isinstance(wrong, PeerLost)
    assert str(wrong) == "server-0 refused: the gate is shut."


def test_a_refusal_before_the_first_round_is_told(couriered: Post) -> None:
    """As of the first parameters, which nobody answers."""
    text = b"no."
    couriered.peers[1].sock.sendall(pack(Frame(Kind.FAULT, 0, length=len(text))) + text)
    couriered.mail._thread.join(5)  # type: ignore[attr-defined]
    couriered.begin()
    assert str(failure(couriered)) == "server-1 refused: no."


def test_a_block_that_is_not_there(post: Post) -> None:
    post.begin()
    post.peers[0].answer(BLOCKS)
    wrong = failure(post)
    assert isinstance(wrong, WireError)
    assert f"server-0 sent a frame of kind 4 for block {BLOCKS}" in str(wrong)


def test_a_block_that_came_already(post: Post) -> None:
    post.begin()
    post.peers[0].answer(1, b"a")
    post.peers[0].answer(1, b"b")
    assert "for block 1" in str(failure(post))
    assert bytes(post.places[0][1]) == b"a" * NBYTES


def test_an_answer_nobody_asked_for_changes_nothing(couriered: Post) -> None:
    """The caller computes with these places between rounds."""
    couriered.begin()
    for peer in couriered.peers:
        for block in range(BLOCKS):
            peer.answer(block)
    couriered.mail.collect()
    couriered.peers[0].answer(0, b"z")
    couriered.mail._thread.join(5)  # type: ignore[attr-defined]
    assert bytes(couriered.places[0][0]) == b"a" * NBYTES
    couriered.begin()
    assert "for block 0" in str(failure(couriered))


@pytest.mark.parametrize("kind", [Kind.PUSH, Kind.INIT, Kind.PULL, Kind.LEAVE])
def test_what_no_server_says(post: Post, kind: Kind) -> None:
    post.begin()
    post.peers[0].answer(0, kind=kind)
    assert f"kind {int(kind)}" in str(failure(post))


@pytest.mark.parametrize("length", [0, NBYTES - 1, NBYTES + 1, 1 << 39])
def test_a_wrong_length(post: Post, length: int) -> None:
    post.begin()
    post.peers[0].sock.sendall(pack(Frame(Kind.STATE, 0, length=length)))
    wrong = failure(post)
    assert isinstance(wrong, WireError)
    assert f"sent {length} bytes where {NBYTES} were due" in str(wrong)


def test_noise(post: Post) -> None:
    post.begin()
    post.peers[0].sock.sendall(b"\xff" * HEADER_BYTES)
    assert "not a Paceline frame" in str(failure(post))


def test_silence_is_not_waited_for_without_end(
    couriered: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0.5)
    couriered.begin()
    couriered.peers[0].answer(0)
    wrong = failure(couriered)
    assert isinstance(wrong, PeerLost)
    assert "has answered" in str(wrong)


def test_silence_on_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    post = Post(Direct)
    post.peers[0].line.sock.settimeout(0.2)
    post.begin()
    assert "server-0 has not answered for" in str(failure(post))
    post.close()


def test_closing_ends_the_thread() -> None:
    before = threading.active_count()
    Post(Courier).close()
    assert threading.active_count() == before


@pytest.mark.parametrize("how", [Direct, Courier])
def test_it_says_which_server_it_waits_for(how: Any, eventually: Any) -> None:
    post = Post(how)
    post.begin()
    for block in range(BLOCKS):
        post.peers[0].answer(block)
    waiter = threading.Thread(target=post.mail.collect)
    waiter.start()
    eventually(lambda: post.slate.read()[0] == slate.WAIT | slate.server(1), 5)
    for block in range(BLOCKS):
        post.peers[1].answer(block)
    waiter.join(5)
    assert post.slate.read()[0] == slate.EXCHANGE
    post.close()
