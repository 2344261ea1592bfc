"""Templates: everything that came from a run is escaped, since all of it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from paceline.report.layout import Column
from paceline.report.words import NONE, duration, many, number, percent, short
from paceline.web.files import plotly_version
from paceline.web.topic import Content

FIRST = 60  # rows of a list that are drawn at once: more than a screen shows


@cache
def environment() -> Environment:
    made = Environment(
        loader=PackageLoader("paceline.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters |= {
        "number": number,
        "percent": percent,
        "short": short,
        "duration": duration,
        "address": address,
        "shown": shown,
        "rows": rows,
        "kind": kind,
    }
    made.globals |= {"many": many, "NONE": NONE, "FIRST": FIRST, "plotly": plotly_version()}
    return made


def page(template: str, **values: Any) -> str:
    """A whole page."""
    return environment().get_template(template).render(**values)


def part(name: str, *values: Any) -> Markup:
    """A piece of one: a macro of parts.html."""
    made: Markup = getattr(_parts(), name)(*values)
    return Markup(str(made).strip())


@cache
def _parts() -> Any:
    return environment().get_template("parts.html").module


def address(key: str) -> str:
    """A run or a sweep in an address: `a run` is `a%20run`; a run of a sweep keeps its slash."""
    return quote(key, safe="/")


def kind(parts: Mapping[str, Content], name: str) -> dict[str, Content]:
    """The parts `NAME:…`, by what follows."""
    return {
        key.partition(":")[2]: each for key, each in parts.items() if key.startswith(f"{name}:")
    }


def shown(columns: Sequence[Column]) -> list[Column]:
    """Those that say anything."""
    return [column for column in columns if column.words or not column.empty]


def rows(columns: Sequence[Column]) -> list[tuple[tuple[Column, str], ...]]:
    """Row by row: each cell with its column."""
    cells = [[(column, cell) for cell in column.cells] for column in columns]
    return list(zip(*cells, strict=True))
