"""Samples a second: of one run over its time, and of several runs beside each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from paceline.measure.rates import throughput, warm_window
from paceline.report.charts.chart import Chart, plain
from paceline.report.charts.theme import BLUE, GREY, axis, faint, figure, of_role, of_runs
from paceline.report.charts.thin import POINTS, Array
from paceline.report.layout import Column
from paceline.report.words import between, duration, many, number
from paceline.store.steps import Steps

STEPS_A_POINT = 4  # at least, of the worker with the fewest: else a line shows the grain of steps
LINES = 16  # workers that are drawn one by one
ALL = "all workers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """A run's or a cell's samples a second, and its 95 % interval where that is known."""

    name: str
    strategy: str
    value: float
    low: float | None = None
    high: float | None = None


def over_time(steps: Mapping[str, Steps], points: int = POINTS) -> Chart | None:
    """From workers' rows of STEP; None of a run that has hardly begun."""
    series = {role: rows for role, rows in steps.items() if len(rows)}
    if not series:
        return None
    begin = min(float(rows["time"][0]) for rows in series.values())
    end = max(float(rows["time"][-1]) for rows in series.values())
    pieces = min(points, min(len(rows) for rows in series.values()) // STEPS_A_POINT)
    if pieces < 2 or end <= begin:
        return None
    edges = np.linspace(begin, end, pieces + 1)
    rates = {role: _rates(rows, edges) for role, rows in series.items()}
    middle = plain((edges[:-1] + edges[1:]) / 2)
    total = np.sum(list(rates.values()), axis=0)
    found = throughput(list(series.values()))
    lines = [_line(ALL, middle, total, {"color": GREY, "width": 3})]
    if 1 < len(rates) <= LINES:
        lines += [
            _line(role, middle, rate, {**of_role(role).line, "width": 1.2})
            for role, rate in rates.items()
        ]
    fig = figure(
        lines,
        axis("seconds since the start"),
        axis("samples/s", rangemode="tozero"),
        hovermode="x unified",
        showlegend=len(lines) > 1,
        shapes=_window(list(series.values())),
    )
    each = (end - begin) / pieces
    told = f"{number(found.samples_per_second)} samples/s"
    if (spread := between(found.low, found.high)) != "–":
        told += f" ({spread})"
    return Chart(
        name="throughput",
        title="Throughput over time",
        says=f"{many(len(series), 'worker')} made {told}; over pieces of "
        f"{duration(each) if each >= 1 else f'{1000 * each:.0f} ms'} it was "
        f"between {number(total.min())} and {number(total.max())}.",
        views={"": fig},
        table=_table({ALL: total, **rates}),
        note="Each point is the mean of its piece of time. The shaded part, after warm-up and "
        "before the first worker is done, is what the rate is taken from.",
    )


def side_by_side(rates: Sequence[Rate]) -> Chart | None:
    """A bar for each, with its interval."""
    if not rates:
        return None
    styles = of_runs({rate.name: rate.strategy for rate in rates})
    best = max(rates, key=lambda rate: rate.value)
    bars = {
        "type": "bar",
        "orientation": "h",
        "y": [rate.name for rate in rates],
        "x": plain(rate.value for rate in rates),
        "marker": {"color": [styles[rate.name].colour for rate in rates]},
        "error_x": error(rates),
        "hovertemplate": "%{y}: %{x:,.0f} samples/s<extra></extra>",
    }
    fig = figure(
        [bars],
        axis("samples/s", rangemode="tozero"),
        axis("", autorange="reversed"),
        height=90 + 36 * len(rates),
    )
    return Chart(
        name="rates",
        title="Throughput",
        says=f"{best.name} made the most, {number(best.value)} samples/s; the least was "
        f"{number(min(rate.value for rate in rates))}.",
        views={"": fig},
        table=[
            Column(title="", cells=[rate.name for rate in rates], words=True),
            Column(title="samples/s", cells=[number(rate.value) for rate in rates]),
            Column(title="95 % interval", cells=[between(r.low, r.high) for r in rates]),
        ],
    )


def error(rates: Sequence[Any], colour: str = GREY) -> dict[str, Any]:
    """Error bars of whatever has `value`, `low` and `high`."""
    known = [(r.value, r.low, r.high) for r in rates]
    return {
        "type": "data",
        "symmetric": False,
        "array": plain(0 if high is None else high - value for value, _, high in known),
        "arrayminus": plain(0 if low is None else value - low for value, low, _ in known),
        "color": colour,
        "thickness": 1.5,
        "width": 4,
    }


def _rates(rows: Steps, edges: Array) -> Array:
    """Samples of a step are spread evenly over it, as where the rate is taken."""
    until = np.interp(edges, rows["time"], np.cumsum(rows["samples"], dtype=np.float64))
    rates: Array = np.diff(until) / np.diff(edges)
    return rates


def _line(name: str, x: list[float | None], y: Array, line: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": x,
        "y": plain(y),
        "line": line,
        "hovertemplate": "%{y:,.0f}",
    }


def _window(series: Sequence[Steps]) -> list[dict[str, Any]]:
    found = warm_window(series)
    if found is None:
        return []
    shade = {"fillcolor": faint(BLUE, 0.07), "line": {"width": 0}, "layer": "below"}
    return [
        {
            **{"type": "rect", "xref": "x", "yref": "paper", "y0": 0, "y1": 1},
            **{"x0": found[0], "x1": found[1]},
            **shade,
        }
    ]


def _table(rates: Mapping[str, Array]) -> list[Column]:
    return [
        Column(title="role", cells=list(rates), words=True),
        Column(title="mean", unit="samples/s", cells=[number(r.mean()) for r in rates.values()]),
        Column(title="lowest", unit="samples/s", cells=[number(r.min()) for r in rates.values()]),
        Column(title="highest", unit="samples/s", cells=[number(r.max()) for r in rates.values()]),
    ]
