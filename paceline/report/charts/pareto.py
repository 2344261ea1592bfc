"""Time against money: what is worth having, and what nobody should take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paceline.report.charts.chart import Chart, plain
from paceline.report.charts.theme import BLUE, GREY, axis, figure
from paceline.report.layout import Column
from paceline.report.words import duration, number

NAMED = 8  # choices whose names stand beside them; of more, one sees them on pointing


def pareto(costs: Mapping[str, Any]) -> Chart | None:
    """From what `paceline cost --json` prints."""
    span, coin = costs["span"], costs["currency"]
    known = [c for c in costs["choices"] if c[span]["money"] is not None]
    if not known:
        return None
    front = sorted((c for c in known if c["front"]), key=lambda c: c[span]["seconds"])
    behind = [c for c in known if not c["front"]]
    named = len(known) <= NAMED
    traces = [
        _points("the front", front, span, {"color": BLUE, "size": 11}, joined=True, named=named),
        _points(
            "behind it",
            behind,
            span,
            {"color": GREY, "size": 9, "symbol": "x"},
            joined=False,
            named=named,
        ),
    ]
    fig = figure(
        [trace for trace in traces if trace["x"]],
        axis(f"seconds, {_of(span)}", rangemode="tozero"),
        axis(f"{coin}, {_of(span)}", rangemode="tozero"),
        showlegend=bool(front and behind),
    )
    return Chart(
        name="pareto",
        title="Time against money",
        says=" ".join(costs["sentences"]) or "There is one choice, so nothing to hold it against.",
        views={"": fig},
        table=[
            Column(title="choice", cells=[c["choice"] for c in known], words=True),
            Column(title="time", cells=[duration(c[span]["seconds"]) for c in known]),
            Column(title="price", unit=coin, cells=[_money(c[span]["money"]) for c in known]),
            Column(
                title="an hour", unit=coin, cells=[number(c["price_an_hour"], 2) for c in known]
            ),
            Column(
                title="verdict",
                cells=[
                    "worth having"
                    if c["front"]
                    else f"beaten by {c['beaten_by']}"
                    if c["beaten_by"]
                    else "behind by less than the noise"
                    for c in known
                ],
                words=True,
            ),
        ],
    )


def _points(
    name: str,
    choices: Sequence[Mapping[str, Any]],
    span: str,
    marker: Mapping[str, Any],
    *,
    joined: bool,
    named: bool,
) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": ("lines+markers" if joined else "markers") + ("+text" if named else ""),
        "text": [c["choice"] for c in choices] if named else [],
        "textposition": "top center",
        "cliponaxis": False,
        "name": name,
        "x": plain(c[span]["seconds"] for c in choices),
        "y": plain(c[span]["money"] for c in choices),
        "customdata": [c["choice"] for c in choices],
        "marker": dict(marker),
        "line": {"color": marker["color"], "width": 1.5, "shape": "hv"},
        "hovertemplate": "%{customdata}: %{x:.4g} s, %{y:.4g}<extra></extra>",
    }


def _of(span: str) -> str:
    return {"run": "a run", "epoch": "an epoch"}.get(span, "to the target")


def _money(value: float) -> str:
    return f"{value:,.2f}" if value >= 1 else f"{value:.3g}"
