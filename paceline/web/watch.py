"""One look at the files for all who listen, once a second, and none while nobody does."""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
from collections.abc import AsyncIterator, Callable

from paceline.errors import PacelineError
from paceline.web.topic import Source, Topic

EVERY = 1.0  # seconds between two looks
SILENCE = 15.0  # seconds after which a stream says that it is still there
KEPT = 32  # topics that nobody listens to, whose parts need not be made anew


class Watch:
    """The topics that were asked for, and the task that looks after those with listeners."""

    def __init__(self) -> None:
        self._topics: dict[str, Topic] = {}
        self._task: asyncio.Task[None] | None = None
        self._birth = secrets.token_hex(4)  # versions count from nothing after a restart
        self._over = False

    def topic(self, key: str, make: Callable[[], Source]) -> Topic:
        """That of a page; `make` says where it comes from, the first time."""
        found = self._topics.pop(key, None) or Topic(make())
        self._topics[key] = found  # the newest last
        idle = [name for name, topic in self._topics.items() if not topic.listeners]
        for name in idle[: max(0, len(idle) - KEPT)]:
            del self._topics[name]
        return found

    def mark(self, version: int) -> str:
        """By which a page says later what it has seen."""
        return f"{self._birth}-{version}"

    async def stream(self, topic: Topic, mark: str) -> AsyncIterator[str]:
        """Server-sent events: whatever is newer than the mark, as it comes."""
        birth, _, number = mark.partition("-")
        seen = int(number) if birth == self._birth and number.isdecimal() else 0
        topic.listeners += 1
        try:
            self._begin()
            while not self._over:
                bell = topic.bell
                version, news = topic.since(seen)
                if news:
                    yield f"id: {self.mark(version)}\ndata: {json.dumps(news)}\n\n"
                    seen = version
                    continue
                try:
                    await asyncio.wait_for(bell.wait(), SILENCE)
                except TimeoutError:
                    yield ": still here\n\n"  # fails if the other end is gone
        finally:
            topic.listeners -= 1

    def close(self) -> None:
        """End all streams."""
        self._over = True
        for topic in self._topics.values():
            topic.ring()

    def _begin(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._look())

    async def _look(self) -> None:
        while not self._over:
            heard = [topic for topic in self._topics.values() if topic.listeners]
            if not heard:
                return
            for topic in heard:
                await asyncio.to_thread(_refreshed, topic)
                if topic.version != topic.rung:  # also if whoever loaded the page was quicker
                    topic.ring()
            await asyncio.sleep(EVERY)


def _refreshed(topic: Topic) -> None:
    with contextlib.suppress(PacelineError):  # whoever loads the page is told what is wrong
        topic.refresh()
