"""One look for all who listen, none while nobody does, and streams that end when told to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from paceline.web import watch as module
from paceline.web.watch import Watch


class Told:
    """A source that counts how often it is asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.parts = {"a": "0"}

    def __call__(self) -> dict[str, Any]:
        self.asked += 1
        return dict(self.parts)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EVERY", 0.005)
    monkeypatch.setattr(module, "SILENCE", 0.1)


async def news(stream: AsyncIterator[str]) -> dict[str, Any]:
    async for message in stream:
        if message.startswith("id: "):
            found: dict[str, Any] = json.loads(message.partition("data: ")[2])
            return found
    return {}


def test_news_come_as_they_are_made() -> None:
    async def listens() -> None:
        watch, told = Watch(), Told()
        topic = watch.topic("x", lambda: told)
        topic.refresh()
        version, _ = topic.parts()
        one = watch.stream(topic, watch.mark(version))
        other = watch.stream(topic, "another-9")  # from before a restart: gets all
        assert (await news(other))["a"] == "0"
        told.parts["a"] = "1"
        assert await news(one) == {"a": "1"} == await news(other)
        watch.close()
        assert await news(one) == {}  # both end
        assert await news(other) == {}
        assert topic.listeners == 0

    asyncio.run(asyncio.wait_for(listens(), 20))


def test_who_loads_the_page_takes_no_news_from_those_who_listen() -> None:
    async def listens() -> None:
        watch, told = Watch(), Told()
        topic = watch.topic("x", lambda: told)
        stream = watch.stream(topic, "")
        await news(stream)
        told.parts["a"] = "1"
        topic.refresh()  # as a page does
        assert await news(stream) == {"a": "1"}
        watch.close()

    asyncio.run(asyncio.wait_for(listens(), 20))


def test_nobody_listens_so_nobody_looks() -> None:
    async def listens() -> None:
        watch, told = Watch(), Told()
        topic = watch.topic("x", lambda: told)
        stream = watch.stream(topic, "")
        await news(stream)
        await stream.aclose()  # type: ignore[attr-defined]
        await asyncio.sleep(0.05)
        before = told.asked
        await asyncio.sleep(0.1)
        assert told.asked == before

    asyncio.run(asyncio.wait_for(listens(), 20))


def test_a_silent_stream_says_that_it_is_there() -> None:
    async def listens() -> None:
        watch, told = Watch(), Told()
        topic = watch.topic("x", lambda: told)
        topic.refresh()
        async for message in watch.stream(topic, watch.mark(1)):
            assert message.startswith(":")
            break

    asyncio.run(asyncio.wait_for(listens(), 20))


def test_topics_are_forgotten_but_not_those_with_listeners() -> None:
    async def listens() -> None:
        watch = Watch()
        heard = watch.topic("heard", Told)
        heard.listeners = 1
        first = watch.topic("0", Told)
        for n in range(1, module.KEPT + 1):
            watch.topic(str(n), Told)
        assert watch.topic("heard", Told) is heard
        assert watch.topic("0", Told) is not first

    asyncio.run(listens())
