"""What one page shows, in parts that change one by one.

A part is HTML or a figure, and knows the version of the topic in which it became what it is. Who
has seen version 7 is sent what is newer, however much happened in between: there is no queue, so
nobody can be too slow for it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from typing import Any

from markupsafe import escape

from paceline.errors import PacelineError
from paceline.web.reading import legible

WRONG = "wrong"
Content = str | Mapping[str, Any]
Source = Callable[[], Mapping[str, Content]]  # all parts as they are now


class Topic:
    """`refresh` may be called by any thread, `bell` is the event loop's alone."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._lock = threading.Lock()
        self._parts: dict[str, tuple[int, Content | None]] = {}
        self.version = 0
        self.rung = 0  # the version that those who wait were told of last
        self.listeners = 0
        self.bell = asyncio.Event()

    def refresh(self) -> None:
        """Ask the source. Raises what is wrong with one that never told anything; of one that did,
        the part `wrong` tells it."""
        with self._lock:
            told = self._told()
            new = {
                name: content
                for name, content in told.items()
                if name not in self._parts or self._parts[name][1] != content
            }
            gone = {name for name, (_, old) in self._parts.items() if old is not None} - set(told)
            if new or gone:
                self.version += 1
                self._parts |= {name: (self.version, content) for name, content in new.items()}
                self._parts |= dict.fromkeys(gone, (self.version, None))

    def _told(self) -> Mapping[str, Content]:
        try:
            return {**legible(self._source), WRONG: ""}
        except PacelineError as wrong:
            if not self._parts:
                raise
            now = {name: what for name, (_, what) in self._parts.items() if what is not None}
            return now | {WRONG: str(escape(str(wrong)))}

    def parts(self) -> tuple[int, dict[str, Content]]:
        """The version, and all there is in it."""
        with self._lock:
            found = {name: what for name, (_, what) in self._parts.items() if what is not None}
            return self.version, found

    def since(self, version: int) -> tuple[int, dict[str, Content | None]]:
        """The version, and what is newer than the other; None for parts that are gone."""
        with self._lock:
            news = {name: what for name, (at, what) in self._parts.items() if at > version}
            return self.version, news

    def ring(self) -> None:
        """Wake those who wait for news."""
        self.rung = self.version
        self.bell.set()
        self.bell = asyncio.Event()
