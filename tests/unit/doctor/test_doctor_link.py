"""Both ends of a link: what is measured, who is refused, and what nobody can make it do."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from paceline.doctor import sink
from paceline.doctor.link import measure_link
from paceline.doctor.listening import LOOPBACK, Listening
from paceline.doctor.secrets import address_of, key_of, new_secret, secret_for
from paceline.errors import PeerLost, RequestError, RunFailed
from paceline.transport.frames import Frame, Kind
from paceline.transport.sockets import Line, listen

pytestmark = pytest.mark.timeout(30)

SECRET = b"s" * 32


class Listener:
    def __init__(self, seconds: float = 20.0) -> None:
        sock, self.address = listen("127.0.0.1:0")
        self.told: list[str] = []
        self.thread = threading.Thread(
            target=sink.serve, args=(sock, SECRET, seconds, self.told.append), daemon=True
        )
        self.thread.start()

    def socket(self) -> socket.socket:
        host, _, port = self.address.rpartition(":")
        sock = socket.create_connection((host, int(port)), timeout=5)
        sock.settimeout(5)
        return sock

    def line(self) -> Line:
        line = Line.connect(self.address, "the listener", SECRET)
        line.sock.settimeout(5)
        return line


@pytest.fixture
def listener(monkeypatch: pytest.MonkeyPatch) -> Listener:
    monkeypatch.setattr(sink, "EVERY", 0.02)
    return Listener()


@contextlib.contextmanager
def closing(*things: Line | socket.socket) -> Iterator[None]:
    try:
        yield
    finally:
        for thing in things:
            thing.close()


def test_a_link_is_measured_both_ways(listener: Listener) -> None:
    found = measure_link(listener.address, SECRET, 0.4)
    assert 0 < found.latency.value <= found.slowest < 1
    assert found.push.value > 1e6
    assert found.pull.value > 1e6
    assert found.push.low is not None
    assert listener.told == ["127.0.0.1 measures"]


def test_another_secret_is_refused_by_both_ends(listener: Listener) -> None:
    with pytest.raises(PeerLost, match="does not know this secret"):
        measure_link(listener.address, b"x" * 32, 0.1)
    assert listener.told == ["127.0.0.1 refused: this peer does not belong to the run."]
    measure_link(listener.address, SECRET, 0.05)  # and it still serves


def test_nobody_there_is_told() -> None:
    sock, address = listen("127.0.0.1:0")
    sock.close()
    with pytest.raises(PeerLost, match="cannot reach"):
        measure_link(address, SECRET, 0.1)


@pytest.mark.parametrize(
    "frame",
    [
        Frame(Kind.PUSH, 0, length=sink.BLOCK + 1),
        Frame(Kind.PUSH, 0, length=1 << 39),
        Frame(Kind.PULL, 0, sequence=1 << 50),
        Frame(Kind.PULL, 0, length=8),
        Frame(Kind.INIT, 0, length=8),
        Frame(Kind.FOLLOW, 0),
    ],
)
def test_what_is_too_large_or_of_another_kind_is_refused(listener: Listener, frame: Frame) -> None:
    line = listener.line()
    with closing(line):
        line.send(frame)
        with pytest.raises(PeerLost, match="refused"):
            line.receive()


def test_a_guest_that_takes_nothing_is_not_owed_without_end(listener: Listener) -> None:
    line = listener.line()
    line.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)

    def ask() -> None:
        for _ in range(100_000):
            line.send(Frame(Kind.PULL, 0, sequence=sink.BLOCK))

    with closing(line), pytest.raises(PeerLost, match="closed the connection"):
        ask()


def test_there_are_only_so_many_guests(listener: Listener) -> None:
    guests = [listener.line() for _ in range(sink.GUESTS)]
    with closing(*guests):
        for guest in guests:
            guest.send(Frame(Kind.PULL, 0))
            guest.receive()
        more = listener.socket()
        with closing(more):
            assert more.recv(1) == b""


def test_who_stays_too_long_is_shown_out(
    listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = listener.line()
    with closing(line):
        line.send(Frame(Kind.PULL, 0))
        line.receive()
        monkeypatch.setattr(sink, "STAY", 0.0)
        with pytest.raises(PeerLost, match="closed"):
            line.receive()


def test_it_ends_by_itself() -> None:
    listener = Listener(seconds=0.2)
    listener.thread.join(5)
    assert not listener.thread.is_alive()
    with pytest.raises(OSError, match="refused"):
        listener.socket()


# Secrets and addresses.


def test_a_secret_is_new_each_time_and_makes_the_key_that_its_text_makes() -> None:
    (key, text), (other, _) = new_secret(), new_secret()
    assert key != other
    assert key == key_of(f"{text}\n")
    assert len(bytes.fromhex(key)) == 32


def test_a_secret_comes_from_a_file_or_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "secret"
    file.write_text("a secret of my own\n")
    monkeypatch.setenv("PACELINE_SECRET", "a secret of my own")
    assert secret_for(file) == secret_for(None) == key_of("a secret of my own")


@pytest.mark.parametrize(
    ("text", "words"), [("short", "at least 16"), ("x" * 5000, "at most"), (None, "no such file")]
)
def test_a_secret_that_is_none_is_refused(tmp_path: Path, text: str | None, words: str) -> None:
    file = tmp_path / "secret"
    if text is not None:
        file.write_text(text)
    with pytest.raises(RequestError, match=words):
        secret_for(file)


def test_without_a_secret_it_is_said_where_to_put_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PACELINE_SECRET", raising=False)
    with pytest.raises(RequestError, match="set PACELINE_SECRET, or give --secret-file"):
        secret_for(None)


def test_addresses() -> None:
    assert address_of("--peer", "host:5151") == ("host", 5151)
    assert address_of("--peer", "[fe80::1]:80") == ("fe80::1", 80)
    assert address_of("--listen", "5151", LOOPBACK) == (LOOPBACK, 5151)
    assert address_of("--listen", "0", LOOPBACK) == (LOOPBACK, 0)
    for wrong in ("host", "host:", ":5", "host:x", "host:70000", "host:0", "host:-1"):
        with pytest.raises(RequestError, match="HOST:PORT"):
            address_of("--peer", wrong)


def test_a_listener_is_on_the_loopback_unless_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PACELINE_SECRET", raising=False)
    listening = Listening("0", None)
    assert listening.address.startswith("127.0.0.1:")
    assert listening.secret is not None
    began = time.monotonic()
    listening.serve(lambda _: None, 0.05)
    assert time.monotonic() - began < 5
    monkeypatch.setenv("PACELINE_SECRET", "known to both of them")
    known = Listening("0", None)
    assert known.secret is None  # so there is none to show
    known.serve(lambda _: None, 0.0)


def test_an_address_that_is_taken_or_not_ours_is_told() -> None:
    sock, address = listen("127.0.0.1:0")
    with closing(sock), pytest.raises(RunFailed, match="give --listen another"):
        Listening(address, None)
    with pytest.raises(RunFailed, match="give --listen another"):
        Listening("192.0.2.1:0", None)
