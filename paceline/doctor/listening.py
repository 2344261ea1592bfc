"""`paceline doctor --listen`: the other end of another doctor's link, for a while."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from paceline import env
from paceline.doctor.secrets import address_of, new_secret, secret_for
from paceline.doctor.sink import serve
from paceline.errors import RunFailed
from paceline.transport.sockets import listen

LOOPBACK = "127.0.0.1"  # unless another address is asked for, nobody outside gets here
SECONDS = 600.0


class Listening:
    """`address` is where; `secret` is to be shown once, None if both ends were given it."""

    def __init__(self, where: str, secret_file: Path | None) -> None:
        host, port = address_of("--listen", where, LOOPBACK)
        self.secret: str | None = None
        if secret_file is not None or env.secret() is not None:
            self._key = secret_for(secret_file)
        else:
            self._key, self.secret = new_secret()
        try:
            self._sock, self.address = listen(f"{host}:{port}")
        except RunFailed as wrong:
            said = str(wrong).partition(";")[0]
            raise RunFailed(f"{said}; give --listen another address or port.") from None

    def serve(self, told: Callable[[str], None], seconds: float = SECONDS) -> None:
        """Until the time is over; `told` hears who comes and who is refused."""
        serve(self._sock, bytes.fromhex(self._key), seconds, told)
