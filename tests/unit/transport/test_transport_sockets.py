"""Where servers listen."""

from __future__ import annotations

import socket

import pytest

from paceline.errors import RunFailed
from paceline.transport.sockets import listen, tune


def test_port_0_takes_a_free_one_and_says_which() -> None:
    listener, address = listen("127.0.0.1:0")
    host, _, port = address.rpartition(":")
    assert host == "127.0.0.1"
    socket.create_connection((host, int(port)), timeout=5).close()
    listener.close()


def test_a_port_in_use_is_named() -> None:
    listener, address = listen("127.0.0.1:0")
    with pytest.raises(RunFailed, match=rf"{address}: address already in use.*--port"):
        listen(address)
    listener.close()


def test_a_port_that_is_none_is_named() -> None:
    """The second of two servers, one port higher."""
    with pytest.raises(RunFailed, match="65536"):
        listen("127.0.0.1:65536")


@pytest.mark.parametrize("host", ["203.0.113.7", "no-such-host.invalid"])
def test_a_host_that_is_not_this_one_is_named(host: str) -> None:
    with pytest.raises(RunFailed, match=host) as failed:
        listen(f"{host}:0")
    assert "unknown error" not in str(failed.value)


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="this system cannot be asked")
@pytest.mark.parametrize(("lease", "seconds"), [(0.0, 0), (3.0, 10), (20.0, 40), (1e9, 3600)])
def test_a_silent_connection_is_given_up_some_time_after_the_lease(
    lease: float, seconds: int
) -> None:
    with socket.socket() as sock:
        tune(sock, lease)
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert bool(sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)) == (lease > 0)
        waits = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
        assert waits == 1000 * seconds
