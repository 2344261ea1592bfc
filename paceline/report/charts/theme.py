"""One look for every chart: colours, axes, and nothing that is not data.

Backgrounds are transparent and greys in between, so that a page decides between dark and light.
The colours are Paul Tol's vibrant ones, which also the colour-blind tell apart, darkened or
lightened until each stands out against white and against black.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paceline.exchange.catalog import STRATEGIES
from paceline.report.charts.chart import Figure

BLUE, ORANGE, TEAL, MAGENTA = "#0077bb", "#d9662b", "#009988", "#d6337a"
SKY, RED, OLIVE, GREY = "#2a9fd0", "#cc3311", "#8f8a1f", "#808080"
PALETTE = (BLUE, ORANGE, TEAL, MAGENTA, SKY, RED, OLIVE, GREY)
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star", "pentagon")
DASHES = ("solid", "dash", "dot", "dashdot")

# Of the same kind the same hue: what computes green, what moves blue, what waits red.
SPANS = {
    "data": "#d9a62b",
    "copy": "#b8860b",
    "forward": "#3aa657",
    "backward": "#1f7a3d",
    "compute": "#2c8f4a",
    "encode": "#a65aa6",
    "push": "#2a9fd0",
    "pull": "#0077bb",
    "exchange": "#1a86c4",
    "wait": "#cc3311",
    "update": "#009988",
    "evaluate": "#d6337a",
    "checkpoint": "#8a8a8a",
    "snapshot": "#a5a5a5",
    "receive": "#2a9fd0",
    "decode": "#a65aa6",
    "apply": "#009988",
    "send": "#0077bb",
    "other": "#8a8a8a",
    "gate": "#cc3311",
    "idle": "#c9c9c9",
}

_STRATEGIES = {name: (GREY, OLIVE, *PALETTE[:6])[n % 8] for n, name in enumerate(STRATEGIES)}
_GRID = "rgba(128,128,128,0.25)"
_TEXT = "#767676"  # a page's own style says better
HEIGHT = 340


@dataclass(frozen=True, slots=True)
class Style:
    """How one of several lines is told apart: never by its colour alone."""

    colour: str
    symbol: str
    dash: str

    @property
    def line(self) -> dict[str, Any]:
        return {"color": self.colour, "dash": self.dash, "width": 2}

    @property
    def marker(self) -> dict[str, Any]:
        return {"color": self.colour, "symbol": self.symbol, "size": 8}


def of_role(role: str) -> Style:
    """The same for a role in every chart of every run."""
    name, _, number = role.partition("-")
    n = int(number) if re.fullmatch(r"\d+", number) else 0
    if name == "worker":
        return Style(PALETTE[n % 7], SYMBOLS[n // 7 % len(SYMBOLS)], "solid")
    if name == "server":
        return Style(PALETTE[(n + 4) % 7], "square", "dash")
    return Style(GREY, "diamond", "dot")


def of_runs(strategies: Mapping[str, str]) -> dict[str, Style]:
    """For each of several runs or cells, by the name of its strategy; of one strategy, one hue."""
    found: dict[str, Style] = {}
    seen: dict[str, int] = {}
    alone = len(set(strategies.values())) < 2
    for n, (name, strategy) in enumerate(strategies.items()):
        k = seen[strategy] = seen.get(strategy, -1) + 1
        colour = PALETTE[n % len(PALETTE)] if alone else _STRATEGIES.get(strategy, GREY)
        found[name] = Style(colour, SYMBOLS[k % len(SYMBOLS)], DASHES[k % len(DASHES)])
    return found


def faint(colour: str, share: float = 0.2) -> str:
    """The colour, seen through."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{share:g})"


def axis(title: str, **more: Any) -> dict[str, Any]:
    """An axis says what it is, with its unit."""
    return {
        "title": {"text": title, "standoff": 8, "font": {"size": 13}},
        "automargin": True,
        "gridcolor": _GRID,
        "linecolor": _GRID,
        "zeroline": False,
        **more,
    }


def figure(
    data: Sequence[Mapping[str, Any]],
    x: Mapping[str, Any],
    y: Mapping[str, Any],
    *,
    height: int = HEIGHT,
    **layout: Any,
) -> Figure:
    """The traces, in the common look. Names in them are shown as they are, whatever is in them."""
    fig: Figure = {
        "data": [dict(trace) for trace in data],
        "layout": {
            "xaxis": dict(x),
            "yaxis": dict(y),
            "height": height,
            "autosize": True,
            "margin": {"l": 56, "r": 16, "t": 12, "b": 48},
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "font": {"family": "system-ui, sans-serif", "size": 13, "color": _TEXT},
            "legend": {"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0},
            "hovermode": "closest",
            "dragmode": False,  # a finger that scrolls the page does not zoom the chart
            **layout,
        },
    }
    return {key: literal(value) for key, value in fig.items()}


def literal(value: Any) -> Any:
    """Texts without tags: plotly takes some, links too. Templates are ours, and stay."""
    if isinstance(value, str):
        return value.replace("&", "&amp;").replace("<", "&lt;")
    if isinstance(value, Mapping):
        return {k: v if k.endswith("template") else literal(v) for k, v in value.items()}
    return [literal(each) for each in value] if isinstance(value, list) else value
