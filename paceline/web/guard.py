"""Who may see the pages, and what pages may do: checked before anything else is.

loopback    the Host header must name the loopback, so that no page of another site, whose
            name leads here, can read along
beyond      a token, once in the address, then in a cookie that no script sees
anything that acts     from our own pages alone: same origin, and a header of ours
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode, urlsplit

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = ("localhost", "127.0.0.1", "::1")
ACTS = "x-paceline"  # a header that only scripts of the same origin may set
HEADERS = {
    # Charts set styles on their own elements; nothing else may come from anywhere but here.
    "content-security-policy": "default-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """`token` None: whoever reaches the port may enter, which only those on this machine can."""

    port: int
    token: str | None = None
    loopback: bool = True

    @property
    def cookie(self) -> str:
        return f"paceline-{self.port}"  # cookies do not know ports

    def fits(self, token: str | None) -> bool:
        if self.token is None:
            return True
        return hmac.compare_digest((token or "").encode(), self.token.encode())

    def names(self, host: str) -> bool:
        """Whether a Host header may be meant for us. Beyond the loopback the token decides."""
        try:
            return not self.loopback or urlsplit(f"//{host}").hostname in LOOPBACK
        except ValueError:
            return False


class Guard:
    """Around the whole app."""

    def __init__(self, app: ASGIApp, door: Door) -> None:
        self._app = app
        self._door = door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        refused = self._refusal(Request(scope))
        await (refused or self._app)(scope, receive, guarded)

    def _refusal(self, request: Request) -> Response | None:
        door = self._door
        if not door.names(request.headers.get("host", "")):
            return _no("This page is only there for 'localhost' and '127.0.0.1'.")
        given = request.query_params.get("token")
        if given is not None and door.token is not None and request.method == "GET":
            if not door.fits(given):
                return _no("This token is not the right one: paceline serve printed it.")
            return self._admitted(request)
        if not door.fits(request.cookies.get(door.cookie)):
            return _no("A token is needed: open the address that paceline serve printed.")
        if request.method not in ("GET", "HEAD") and not _ours(request.headers):
            return _no("This can be asked for from a page of paceline serve alone.")
        return None

    def _admitted(self, request: Request) -> Response:
        """To the same page, without the token in its address."""
        rest = [(k, v) for k, v in request.query_params.multi_items() if k != "token"]
        # One slash: two would name another host.
        target = "/" + request.url.path.lstrip("/") + (f"?{urlencode(rest)}" if rest else "")
        response = RedirectResponse(target, status_code=303)
        response.set_cookie(
            self._door.cookie, self._door.token or "", httponly=True, samesite="strict"
        )
        return response


def _ours(headers: Mapping[str, str]) -> bool:
    origin = headers.get("origin")
    same = origin is None or urlsplit(origin).netloc == headers.get("host")
    return same and ACTS in headers


def _no(sentence: str) -> Response:
    return PlainTextResponse(sentence + "\n", status_code=403)
