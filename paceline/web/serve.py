"""The server: where it listens, and how it ends at once."""

from __future__ import annotations

import contextlib
import secrets
import socket
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from types import FrameType

import uvicorn

from paceline.errors import RequestError
from paceline.web.app import Dashboard
from paceline.web.guard import Door

PORT = 8765
TRIED = 20  # ports that are looked at, where none was asked for
QUEUE = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """A socket that listens already, and who may come in."""

    socket: socket.socket
    door: Door
    address: str  # to be opened in a browser, with the token if there is one


def listen(where: str, port: int | None, *, token: bool) -> Listening:
    """On `where`; the usual port or the next free one, unless one is asked for."""
    loopback = _loopback(where)
    bound = _bound(where, port)
    number = int(bound.getsockname()[1])
    word = secrets.token_urlsafe(24) if token or not loopback else None
    shown = socket.gethostname() if where in ("0.0.0.0", "::") else where
    host = f"[{shown}]" if ":" in shown else shown
    address = f"http://{host}:{number}/" + (f"?token={word}" if word else "")
    return Listening(
        socket=bound, door=Door(port=number, token=word, loopback=loopback), address=address
    )


def serve(root: Path, listening: Listening, ready: Callable[[], None]) -> None:
    """Until Ctrl-C or SIGTERM. `ready` is called once pages can be asked for."""
    board = Dashboard(root, listening.door)
    config = uvicorn.Config(
        board.app,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=1,
    )
    with contextlib.suppress(KeyboardInterrupt):
        _Server(config, board, ready).run(sockets=[listening.socket])


class _Server(uvicorn.Server):
    """Whose streams end when it is to end: it would wait for them."""

    def __init__(self, config: uvicorn.Config, board: Dashboard, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._board = board
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._board.watch.close()
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.should_exit = True  # not noted: to be ended is how this ends


def _loopback(where: str) -> bool:
    if where == "localhost":
        return True
    try:
        return ip_address(where).is_loopback
    except ValueError:
        raise RequestError(
            f"--listen takes an address such as 127.0.0.1 or 0.0.0.0, not '{where}'."
        ) from None


def _bound(where: str, port: int | None) -> socket.socket:
    host = "127.0.0.1" if where == "localhost" else where
    wrong: OSError | None = None
    for number in range(PORT, PORT + TRIED) if port is None else [port]:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        made = socket.socket(family, socket.SOCK_STREAM)
        try:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.bind((host, number))
            made.listen(QUEUE)
            return made
        except OSError as refused:
            made.close()
            wrong = refused
    why = (wrong.strerror or str(wrong)).lower() if wrong else ""
    raise RequestError(
        f"cannot listen on {host} port {port or PORT}: {why}; "
        "choose others with --listen and --port."
    )
