"""The files that pages are made of: these, and no other."""

from __future__ import annotations

import gzip
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from importlib.resources.abc import Traversable

from starlette.responses import Response

KINDS = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
OWN = ("live.js", "list.js", "charts.js", "style.css", "icon.svg")
PLOTLY = "plotly.min.js"


def file_of(name: str) -> Response | None:
    """One of them, if there is one of that name. Any browser takes it compressed."""
    if name not in (*OWN, PLOTLY):
        return None
    kind = f"{KINDS[name.rpartition('.')[2]]}; charset=utf-8"
    # The address of plotly's script names its version; our own change with the program.
    keep = "public, max-age=31536000, immutable" if name == PLOTLY else "no-cache"
    headers = {"cache-control": keep, "content-encoding": "gzip"}
    return Response(_content(name), media_type=kind, headers=headers)


def plotly_version() -> str:
    return version("plotly")


@cache
def _content(name: str) -> bytes:
    return gzip.compress(_place(name).read_bytes(), compresslevel=4, mtime=0)


def _place(name: str) -> Traversable:
    if name == PLOTLY:
        return files("plotly").joinpath("package_data", PLOTLY)
    return files("paceline.web").joinpath("static", name)
