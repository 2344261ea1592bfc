"""The routes: which page, which stream, and the one thing that acts."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from paceline.errors import PacelineError, RequestError, StoreError
from paceline.store.lookup import kind_of
from paceline.web.compare_page import compared
from paceline.web.files import file_of
from paceline.web.guard import Door, Guard
from paceline.web.index import Index, links_in
from paceline.web.list_page import ListPage
from paceline.web.pages import page
from paceline.web.reading import legible
from paceline.web.run_page import RunPage
from paceline.web.stop import Stops
from paceline.web.sweep_page import SweepPage
from paceline.web.topic import Source, Topic
from paceline.web.watch import Watch

LIST = ""  # the key of the page that lists all


class Dashboard:
    """Over one folder of runs."""

    def __init__(self, root: Path, door: Door) -> None:
        self._root = root
        self._index = Index(root)
        self._stops = Stops()
        self.watch = Watch()
        self.app = Starlette(
            routes=[
                Route("/", self._list),
                Route("/at/{key:path}", self._one),
                Route("/compare", self._compare),
                Route("/live", self._live),
                Route("/stop", self._stop, methods=["POST"]),
                Route("/static/{name}", self._file),
            ],
            middleware=[
                Middleware(Guard, door=door),
                # Streams are sent as they come, without it.
                Middleware(GZipMiddleware, minimum_size=4096, compresslevel=4),
            ],
            exception_handlers={
                HTTPException: _missing,
                PacelineError: _wrong,
            },
            lifespan=self._life,
        )

    @contextlib.asynccontextmanager
    async def _life(self, app: Starlette) -> AsyncIterator[None]:
        with contextlib.suppress(PacelineError):  # told by the page
            await asyncio.to_thread(self._topic(LIST).refresh)  # so that the first is as quick
        yield
        self.watch.close()

    async def _list(self, request: Request) -> Response:
        return await self._shown(LIST, "list.html", root=str(self._root))

    async def _one(self, request: Request) -> Response:
        key = request.path_params["key"]
        path = await asyncio.to_thread(self._found, key)
        if kind_of(path) == "sweep":
            return await self._shown(key, "sweep.html", name=path.name)
        return await self._shown(key, "run.html", name=path.name)

    async def _shown(self, key: str, template: str, **values: str) -> Response:
        topic = self._topic(key)
        await asyncio.to_thread(topic.refresh)
        version, parts = topic.parts()
        mark = self.watch.mark(version)
        made = partial(page, template, key=key, mark=mark, parts=parts, **values)
        return HTMLResponse(await asyncio.to_thread(made), headers={"cache-control": "no-store"})

    async def _live(self, request: Request) -> Response:
        key = request.query_params.get("of", LIST)
        topic = self._topic(key)
        mark = request.headers.get("last-event-id") or request.query_params.get("since", "")
        return StreamingResponse(
            self.watch.stream(topic, mark),
            media_type="text/event-stream",
            headers={"cache-control": "no-store"},
        )

    async def _compare(self, request: Request) -> Response:
        keys = list(dict.fromkeys(request.query_params.getlist("with")))
        return await asyncio.to_thread(self._compared, keys)

    def _compared(self, keys: list[str]) -> Response:
        paths = [self._found(key) for key in keys]
        found = legible(lambda: compared(paths))
        return HTMLResponse(page("compare.html", keys=keys, **found))

    async def _stop(self, request: Request) -> Response:
        key = request.query_params.get("of", "")
        try:
            said = await asyncio.to_thread(legible, lambda: self._stops.ask(self._found(key)))
        except PacelineError as wrong:
            return JSONResponse({"said": str(wrong)}, status_code=409)
        return JSONResponse({"said": said})

    async def _file(self, request: Request) -> Response:
        found = await asyncio.to_thread(file_of, request.path_params["name"])
        if found is None:
            raise HTTPException(404)
        return found

    def _found(self, key: str) -> Path:
        path = self._index.find(key)
        if path is None:
            raise RequestError(f"There is no run or sweep '{_brief(key)}' here (any more).")
        if linked := links_in(path):
            raise StoreError(f"'{linked}' in '{path.name}' is a link, which is not followed.")
        return path

    def _topic(self, key: str) -> Topic:
        """For the event loop alone, which has the topics."""
        return self.watch.topic(key, lambda: self._source(key))

    def _source(self, key: str) -> Source:
        if key == LIST:
            return ListPage(self._index)
        path = self._found(key)
        return SweepPage(path, key) if kind_of(path) == "sweep" else RunPage(path, key)


async def _wrong(request: Request, wrong: Exception) -> Response:
    """What cannot be shown, and why."""
    code = 404 if isinstance(wrong, RequestError) else 503
    return HTMLResponse(page("message.html", title="Not to be shown", said=str(wrong)), code)


async def _missing(request: Request, wrong: Exception) -> Response:
    code = wrong.status_code if isinstance(wrong, HTTPException) else 404
    said = "There is no such page." if code == 404 else "That is not how this page is asked for."
    return HTMLResponse(page("message.html", title="Not here", said=said), code)


def _brief(key: str) -> str:
    return key if len(key) <= 80 else f"{key[:80]}…"
