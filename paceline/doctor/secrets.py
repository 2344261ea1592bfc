"""The secret that both ends of a link know, and the address between them."""

from __future__ import annotations

import hashlib
from pathlib import Path

from paceline import env
from paceline.errors import RequestError
from paceline.transport import auth

SHORTEST = 16  # characters of a secret of the user's own
LONGEST = 4096


def new_secret() -> tuple[str, str]:
    """A key, and the text it is made from, to be shown to whoever starts the other end."""
    text = auth.new_secret().hex()
    return key_of(text), text


def secret_for(file: Path | None) -> str:
    """The key from a file, or from PACELINE_SECRET."""
    if file is None:
        text, source = env.secret(), "PACELINE_SECRET"
        if text is None:
            raise RequestError(
                "there is no secret for the other host: set PACELINE_SECRET, or give --secret-file."
            )
    else:
        text, source = _read(file), f"'{file}'"
    if len(text.strip()) < SHORTEST:
        raise RequestError(f"{source}: a secret has at least {SHORTEST} characters.")
    return key_of(text)


def key_of(text: str) -> str:
    """Whatever the text is, 32 bytes, in hexadecimal digits."""
    return hashlib.sha256(text.strip().encode()).hexdigest()


def _read(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            body = opened.read(LONGEST + 1)
    except OSError as wrong:
        raise RequestError(f"--secret-file '{file}': {(wrong.strerror or '').lower()}.") from None
    if len(body) > LONGEST:
        raise RequestError(f"--secret-file '{file}': a secret has at most {LONGEST} characters.")
    return body.decode(errors="replace")


def address_of(flag: str, given: str, host: str | None = None) -> tuple[str, int]:
    """`HOST:PORT`, or `[::1]:PORT`; a port alone where there is a `host` to take."""
    name, colon, port = given.rpartition(":")
    name = name.removeprefix("[").removesuffix("]") if colon else (host or "")
    if not name or not port.isdecimal() or int(port) > 65535 or (host is None and not int(port)):
        form = "[ADDRESS:]PORT" if host else "HOST:PORT"
        raise RequestError(f"{flag} '{given}': give {form}, with a port up to 65535.")
    return name, int(port)
