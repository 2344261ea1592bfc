"""A stream: every byte once and in order, however little the socket takes or gives at a time."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.transport.stream import PARTS, Stream

pytestmark = pytest.mark.timeout(30)

Pair = tuple[Stream, socket.socket]


def narrow() -> Pair:
    """A stream whose other end takes little at a time."""
    ours, theirs = socket.socketpair()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    theirs.settimeout(5)
    return Stream(ours), theirs


@pytest.fixture
def pair() -> Iterator[Pair]:
    stream, theirs = narrow()
    yield stream, theirs
    stream.close()
    theirs.close()


def drain(stream: Stream, theirs: socket.socket, size: int, step: int = 1 << 16) -> bytes:
    """Read the other end while the stream sends what it keeps."""
    got = bytearray()
    while len(got) < size:
        stream.flush()
        got += theirs.recv(step)
    return bytes(got)


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.binary(max_size=5000), max_size=3 * PARTS),
    st.lists(st.integers(1, 9000), min_size=1),
)
def test_every_byte_arrives_once_and_in_order(parts: list[bytes], steps: list[int]) -> None:
    stream, theirs = narrow()
    whole = b"".join(parts)
    got = bytearray()
    counted = 0
    for index, part in enumerate(parts):
        stream.queue(memoryview(part))
        if index % 3 == 0:
            counted += stream.flush()
    turn = 0
    while len(got) < len(whole):
        counted += stream.flush()
        got += theirs.recv(steps[turn % len(steps)])
        turn += 1
    counted += stream.flush()
    assert bytes(got) == whole
    assert counted == len(whole)
    assert not stream.clogged
    stream.close()
    theirs.close()


def test_nothing_to_send_is_sent_at_once(pair: Pair) -> None:
    stream, theirs = pair
    stream.queue(memoryview(b""), memoryview(b"ab"), memoryview(b""))
    assert stream.flush() == 2
    assert not stream.clogged
    assert theirs.recv(9) == b"ab"


def test_what_is_kept_is_what_it_was(pair: Pair) -> None:
    """The rest of the last part is copied; all that went before is sent from where it lies."""
    stream, theirs = pair
    payload = bytearray(b"1" * 1_000_000)
    stream.queue(memoryview(b"head"), memoryview(payload))
    gone = stream.flush()
    assert stream.clogged
    assert stream.owed == 1_000_004 - gone
    stream.keep_rest()
    payload[:] = b"2" * len(payload)
    assert drain(stream, theirs, 1_000_004) == b"head" + b"1" * 1_000_000


def test_without_a_copy_it_is_sent_from_where_it_lies(pair: Pair) -> None:
    stream, theirs = pair
    payload = bytearray(b"1" * 1_000_000)
    stream.queue(memoryview(payload))
    stream.flush()
    payload[:] = b"2" * len(payload)
    assert drain(stream, theirs, 1_000_000).endswith(b"2" * 1000)


def test_keeping_the_rest_of_nothing_is_nothing(pair: Pair) -> None:
    pair[0].keep_rest()
    assert not pair[0].clogged


def test_reading_never_waits(pair: Pair) -> None:
    stream, theirs = pair
    target = bytearray(8)
    assert stream.read(memoryview(target)) == 0
    theirs.sendall(b"abc")
    assert stream.read(memoryview(target)) == 3
    assert target[:3] == b"abc"
    assert stream.read(memoryview(target)[3:]) == 0
    assert not stream.waiting


def test_a_peer_that_is_gone_is_an_error_both_ways(pair: Pair) -> None:
    stream, theirs = pair
    theirs.close()
    with pytest.raises(OSError):  # noqa: PT011 - any of them
        stream.read(memoryview(bytearray(1)))
    stream.queue(memoryview(b"x" * 100_000))
    with pytest.raises(OSError):  # noqa: PT011 - any of them
        stream.flush()


def test_another_thread_may_queue_while_this_one_sends(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the worst moment: what to send is chosen, and not yet looked at."""
    stream, peer = pair
    send = socket.socket.sendmsg

    def queue_and_send(sock: socket.socket, parts: Iterable[memoryview]) -> int:
        stream.queue(memoryview(b"second"))
        monkeypatch.undo()
        return send(sock, parts)

    monkeypatch.setattr(socket.socket, "sendmsg", queue_and_send)
    stream.queue(memoryview(b"first "))
    assert drain(stream, peer, 12) == b"first second"
