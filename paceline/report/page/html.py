"""The report as one page that needs nothing else: scripts, style and data are in it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from paceline import __version__
from paceline.errors import RequestError
from paceline.report.charts.chart import Chart
from paceline.report.page.document import Document, Grid, Listing, Part, Words

LONG = 28  # characters, from which on words in a table may be broken
MARK = '<meta name="generator" content="Paceline'  # by which a report is known
TEMPLATES = resources.files("paceline.report").joinpath("templates")


def as_html(document: Document) -> str:
    """The whole page, which asks for nothing from anywhere."""
    charts = {f"chart-{n}": chart for n, chart in enumerate(document.charts())}
    names = {id(chart): name for name, chart in charts.items()}
    figures = {name: dict(chart.views) for name, chart in charts.items()}
    page = environment().get_template("report.html")
    return page.render(
        document=document,
        version=__version__,
        style=Markup(template_text("charts.css") + template_text("report.css")),
        plotly=Markup(plotly_script()),
        script=Markup(template_text("report.js")),
        figures=script_json(figures),
        chart_name=lambda chart: names[id(chart)],
        kind=_kind,
    )


def environment() -> Environment:
    """Everything that goes into a template is escaped, unless it is marked as ours."""
    found = Environment(
        loader=FunctionLoader(template_text),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters["long"] = lambda column: max(map(len, column.cells), default=0) > LONG
    return found


def template_text(name: str) -> str:
    return TEMPLATES.joinpath(name).read_text("utf-8")


def script_json(value: Any) -> Markup:
    """JSON that may stand in a script tag, whatever texts are in it."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"), ensure_ascii=False)
    for unsafe in "<>&\u2028\u2029":
        text = text.replace(unsafe, f"\\u{ord(unsafe):04x}")
    return Markup(text)


def plotly_script() -> str:
    """The library's script, which comes in its Python package; that is not imported."""
    found = find_spec("plotly")
    path = (
        Path(found.origin).parent / "package_data/plotly.min.js" if found and found.origin else None
    )
    if path is None or not path.is_file():
        raise RequestError("reports need plotly's script; install it with pip install plotly.")
    return path.read_text("utf-8")


def _kind(part: Part) -> str:
    kinds: Mapping[type, str] = {Words: "words", Grid: "grid", Listing: "listing", Chart: "chart"}
    return kinds[type(part)]
