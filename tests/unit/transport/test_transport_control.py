"""The control connection: whole messages or none, in both directions, until one end is gone."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.errors import PeerLost
from paceline.transport.control import MAX_LINE, Control, pair

pytestmark = pytest.mark.timeout(30)

Ends = tuple[Control, Control]


@pytest.fixture
def ends() -> Iterator[Ends]:
    ours, theirs = (Control(sock) for sock in pair())
    yield ours, theirs
    ours.close()
    theirs.close()


def test_messages_keep_their_order_in_both_directions(ends: Ends) -> None:
    ours, theirs = ends
    for number in range(5):
        ours.send("count", number=number)
        theirs.send("down", number=-number)
    assert [m["number"] for m in theirs.poll()] == [0, 1, 2, 3, 4]
    assert [m["number"] for m in ours.poll()] == [0, -1, -2, -3, -4]
    assert ours.poll() == []


def test_take_leaves_the_other_kinds(ends: Ends) -> None:
    ours, theirs = ends
    for kind in ("a", "b", "a"):
        ours.send(kind)
    assert theirs.take("b") == {"kind": "b"}
    assert theirs.take("b") is None
    assert theirs.poll() == [{"kind": "a"}, {"kind": "a"}]


def test_both_ends_count_the_same(ends: Ends) -> None:
    ours, theirs = ends
    ours.send("a", text="much")
    ours.send("b")
    theirs.send("c")
    theirs.poll()
    ours.poll()
    told = ours.counts.with_peer("worker-0")
    assert (told.messages_sent, told.messages_received) == (2, 1)
    assert told.sent > told.received > 0
    assert ours.counts.from_peer("supervisor") == theirs.counts.with_peer("supervisor")


@given(messages=st.lists(st.text(max_size=30), min_size=1, max_size=10), sizes=st.data())
def test_lines_torn_anywhere_are_put_together(messages: list[str], sizes: st.DataObject) -> None:
    raw, other = pair()
    control = Control(other)
    wire = b"".join(
        json.dumps({"kind": "text", "text": text}).encode() + b"\n" for text in messages
    )
    seen = []
    while wire:
        size = sizes.draw(st.integers(1, len(wire)))
        raw.sendall(wire[:size])
        wire = wire[size:]
        seen += control.poll()
    assert [message["text"] for message in seen] == messages
    raw.close()
    control.close()


@pytest.mark.parametrize("line", [b"{torn", b"[1, 2]", b'"text"', b"{}", b"\xff\xfe", b"", b"1"])
def test_a_line_that_is_no_message_is_passed_over(line: bytes) -> None:
    raw, other = pair()
    control = Control(other)
    raw.sendall(line + b"\n" + b'{"kind":"good"}\n')
    assert control.poll() == [{"kind": "good"}]
    raw.close()
    control.close()


def test_a_message_larger_than_the_sockets_buffer(ends: Ends) -> None:
    ours, theirs = ends
    large = "x" * (MAX_LINE - 100)
    sender = threading.Thread(target=ours.send, args=("large",), kwargs={"text": large})
    sender.start()
    assert theirs.wait("large", seconds=10)["text"] == large
    sender.join(5)


def test_a_line_without_end_ends_the_connection() -> None:
    raw, other = pair()
    control = Control(other)

    def babble() -> None:
        try:
            while True:
                raw.sendall(b"x" * 65536)
        except OSError:
            pass

    thread = threading.Thread(target=babble, daemon=True)
    thread.start()
    deadline = time.monotonic() + 10
    while not control.ended and time.monotonic() < deadline:
        control.poll()
    assert control.ended
    control.close()
    thread.join(5)
    raw.close()


def test_what_was_said_before_the_end_is_heard(ends: Ends) -> None:
    ours, theirs = ends
    ours.send("last", word=1)
    ours.close()
    assert theirs.wait("last", seconds=1)["word"] == 1
    with pytest.raises(PeerLost, match="gone"):
        theirs.wait("more", seconds=1)
    assert theirs.ended


def test_last_words_are_heard_also_by_who_was_just_speaking(ends: Ends) -> None:
    """A role says `done` and ends while the supervisor passes it a request."""
    ours, theirs = ends
    theirs.send("done", steps=7)
    theirs.close()
    ours.send("snapshot")
    assert ours.poll() == [{"kind": "done", "steps": 7}]
    assert ours.ended


def test_speaking_to_nobody_is_no_error(ends: Ends) -> None:
    ours, theirs = ends
    theirs.close()
    for _ in range(3):
        ours.send("hello")
    assert ours.poll() == []
    assert ours.ended


def test_waiting_ends_at_its_deadline(ends: Ends) -> None:
    _, theirs = ends
    began = time.monotonic()
    with pytest.raises(PeerLost, match="no 'roster' from the supervisor"):
        theirs.wait("roster", "stop", seconds=0.1)
    assert time.monotonic() - began < 5


def test_waiting_takes_what_another_thread_has_drained(ends: Ends) -> None:
    ours, theirs = ends
    got = []
    waiter = threading.Thread(target=lambda: got.append(theirs.wait("lease", seconds=5)))
    waiter.start()
    ours.send("lease", start=3)
    ours.send("other")
    while theirs.take("other") is None:
        pass
    waiter.join(5)
    assert got == [{"kind": "lease", "start": 3}]


def test_two_threads_never_mix_their_lines(ends: Ends) -> None:
    ours, theirs = ends
    threads = [
        threading.Thread(
            target=lambda name=name: [ours.send(name, text=name * 3000) for _ in range(100)]
        )
        for name in "ab"
    ]
    for thread in threads:
        thread.start()
    seen = [theirs.wait("a", "b", seconds=10) for _ in range(200)]
    for thread in threads:
        thread.join(5)
    assert all(message["text"] == message["kind"] * 3000 for message in seen)


def test_neither_end_is_inherited() -> None:
    for sock in pair():
        assert not os.get_inheritable(sock.fileno())
        assert sock.family == socket.AF_UNIX
        sock.close()


def test_a_bell_is_rung_once_the_message_is_there() -> None:
    ours, theirs = pair()
    other = Control(theirs)
    heard: list[list[str]] = []
    one = Control(ours, lambda: heard.append([said["kind"] for said in other.poll()]))
    one.send("keep")
    one.send("stop")
    assert heard == [["keep"], ["stop"]]
    one.close()
    other.close()
