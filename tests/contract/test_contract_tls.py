"""TLS between workers and servers: the same training, and nobody in who has not the certificate."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from contract_tasks import Net

import paceline
from paceline.errors import PeerLost, RequestError
from paceline.exchange.gates import make_gate
from paceline.server.desk import Desk
from paceline.server.rules import Hyper, make_rule
from paceline.server.serve import serve
from paceline.server.tally import Tally
from paceline.transport.frames import Frame, Kind
from paceline.transport.memory import raw
from paceline.transport.sockets import Line, listen
from paceline.transport.tls import Identity, new_identity, server_context

SECRET = b"s" * 32
SIZE = 300_000  # more than a TLS record, and than what the system buffers at once

pytestmark = [pytest.mark.parallel, pytest.mark.timeout(60, method="signal")]


@pytest.mark.parametrize("servers", [1, 2])
def test_it_changes_nothing_in_the_result(servers: int, runs: Path) -> None:
    plain, hidden = (
        paceline.fit(
            Net(),
            strategy="ps-sync",
            workers=2,
            servers=servers,
            transport="tcp",
            batch=8,
            steps=20,
            out=runs,
            tls=tls,
        ).parameters()
        for tls in (False, True)
    )
    assert all(torch.equal(value, hidden[name]) for name, value in plain.items())


@pytest.fixture
def served() -> Iterator[tuple[str, Identity]]:
    """A server's address, and its certificate."""
    identity, over = new_identity(), threading.Event()
    wake, poke = os.pipe()
    tally = Tally()
    desk = Desk(
        SIZE,
        1,
        lambda: make_gate("at-once", 1),
        lambda size: make_rule("sgd", size, Hyper()),
        tally,
    )
    listener, address = listen("127.0.0.1:0")
    thread = threading.Thread(
        target=serve,
        args=(listener, desk, SECRET, tally, over.is_set, wake, 0.02, server_context(identity)),
        daemon=True,
    )
    thread.start()
    yield address, identity
    over.set()
    os.write(poke, b"!")
    thread.join(5)
    assert not thread.is_alive()


def pulled(line: Line) -> torch.Tensor:
    values = torch.empty(SIZE)
    line.send(Frame(Kind.PULL, 0))
    state = line.receive()
    line.fill(raw(values), state.length)
    return values


def test_a_block_goes_there_and_back(served: tuple[str, Identity]) -> None:
    address, identity = served
    line = Line.connect(address, "server-0", SECRET, identity.certificate)
    values = torch.arange(SIZE, dtype=torch.float32)
    line.send(Frame(Kind.INIT, 0, length=values.nbytes), raw(values))
    assert torch.equal(pulled(line), values)
    line.close()


def test_another_certificate_is_not_trusted(served: tuple[str, Identity]) -> None:
    with pytest.raises(PeerLost, match="no TLS with server-0"):
        Line.connect(served[0], "server-0", SECRET, new_identity().certificate)


def test_who_speaks_no_tls_is_not_heard(
    served: tuple[str, Identity],
) -> None:
    """And the next who does is."""
    address, identity = served
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=5) as stranger:
        stranger.sendall(b"GET / HTTP/1.1\r\n\r\n" * 8)
        try:
            heard = stranger.recv(4096)
        except ConnectionResetError:
            heard = b""
    assert SECRET not in heard
    Line.connect(address, "server-0", SECRET, identity.certificate).close()


def test_the_package_it_needs_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "cryptography", None)
    with pytest.raises(RequestError, match=r"paceline\[tls\]"):
        new_identity()
