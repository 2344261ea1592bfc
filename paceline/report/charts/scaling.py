"""Speedup and efficiency against the number of workers: measured, fitted, and ideal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from paceline.diagnose.usl import Usl, fit_usl
from paceline.report.charts.chart import Chart, plain
from paceline.report.charts.theme import GREY, Style, axis, figure, of_runs
from paceline.report.charts.throughput import error
from paceline.report.layout import Column
from paceline.report.words import between, many, number

CURVE = 60  # points of a fitted curve
TOLD = 6  # cells that are named in the sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class Gained:
    """So many workers, and how many times as fast as the baseline they were."""

    workers: int
    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Cells that differ in their workers alone, the fewest first; `base` is the baseline's crew."""

    name: str
    strategy: str
    base: int
    points: Sequence[Gained]

    @property
    def law(self) -> Usl | None:
        """None below three worker counts."""
        return fit_usl([p.workers for p in self.points], [p.value for p in self.points])


def curves(cells: Sequence[Mapping[str, Any]]) -> list[Curve]:
    """From the cells of a sweep's summary: those that differ in nothing but workers belong
    together, and begin with the baseline that all of them have."""
    by_name = {cell["cell"]: cell for cell in cells}
    found: dict[str, list[Mapping[str, Any]]] = {}
    for cell in cells:
        if cell["gain"] and cell["gain"]["throughput"]["value"] is not None:
            found.setdefault(_without_crew(cell), []).append(cell)
    told = []
    for name, own in found.items():
        base = by_name.get(own[0]["base"])
        if base is None or any(cell["base"] != own[0]["base"] for cell in own):
            continue
        crew = base["spec"]["workers"]
        points = [Gained(workers=crew, value=1.0)]
        points += [
            Gained(
                workers=cell["spec"]["workers"],
                **{k: cell["gain"]["throughput"][k] for k in ("value", "low", "high")},
            )
            for cell in own
        ]
        if len({p.workers for p in points}) > 1:
            points.sort(key=lambda p: p.workers)
            told.append(
                Curve(name=name, strategy=own[0]["spec"]["strategy"], base=crew, points=points)
            )
    return told


def speedup(curves: Sequence[Curve]) -> Chart | None:
    """Times as fast as the baseline, with the ideal and the law that fits best."""
    if not curves:
        return None
    best, most = max(((c, p) for c in curves for p in c.points), key=lambda pair: pair[1].value)
    laws = {curve.name: law for curve in curves if (law := curve.law)}
    told = [f"the most is {number(most.value, 2)} times with {_crew(best, most)}"]
    if most.workers == best.base:
        told = ["no more workers were faster than the baseline"]
    told += [_law(name, law) for name, law in laws.items()]
    crews = _crews(curves)
    x = np.linspace(crews[0], crews[-1], CURVE)
    lines = [_ideal(crews, [n / curves[0].base for n in crews])]
    styles = of_runs({curve.name: curve.strategy for curve in curves})
    for curve in curves:
        if law := laws.get(curve.name):
            fitted = plain(law.rate(float(n)) for n in x)
            lines.append(_line(f"{curve.name}, USL fit", plain(x), fitted, styles[curve.name].line))
        lines.append(_measured(curve, styles[curve.name], "times", ".2f", joined=law is None))
    caveats = [f"For {name}, {each}" for name, law in laws.items() for each in law.caveats]
    return Chart(
        name="speedup",
        title="Speedup",
        says=_sentences(["; ".join(told)]),
        views={"": figure(lines, _workers(crews), axis("times as fast", rangemode="tozero"))},
        table=_table(curves, "speedup", "x", 2),
        note=_sentences(caveats),
    )


def efficiency(curves: Sequence[Curve]) -> Chart | None:
    """The speedup for each time as many workers, in percent: 100 would be ideal."""
    parts = [_of_ideal(curve) for curve in curves]
    more = [(c, p) for c in parts for p in c.points if p.workers > c.base]
    if not more:
        return None
    told = [f"{_crew(c, p)} {p.value:.0f} %" for c, p in more[:TOLD]]
    crews = _crews(parts)
    styles = of_runs({curve.name: curve.strategy for curve in curves})
    lines = [_ideal(crews, [100.0 for _ in crews])]
    lines += [_measured(curve, styles[curve.name], "%", ".0f", joined=True) for curve in parts]
    return Chart(
        name="efficiency",
        title="Efficiency",
        says=f"Of what as many workers would ideally bring: {'; '.join(told)}"
        f"{'; and others' if len(more) > TOLD else ''}.",
        views={"": figure(lines, _workers(crews), axis("% of the ideal", rangemode="tozero"))},
        table=_table(parts, "efficiency", "%", 0),
    )


def _of_ideal(curve: Curve) -> Curve:
    def scaled(value: float | None, workers: int) -> float | None:
        return None if value is None else 100 * value * curve.base / workers

    points = [
        Gained(
            workers=p.workers,
            value=100 * p.value * curve.base / p.workers,
            low=scaled(p.low, p.workers),
            high=scaled(p.high, p.workers),
        )
        for p in curve.points
    ]
    return replace(curve, points=points)


def _measured(curve: Curve, style: Style, unit: str, form: str, *, joined: bool) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines+markers" if joined else "markers",
        "name": curve.name,
        "x": [p.workers for p in curve.points],
        "y": plain(p.value for p in curve.points),
        "error_y": error(curve.points, style.colour),
        "line": style.line,
        "marker": style.marker,
        "hovertemplate": f"%{{x}} workers: %{{y:{form}}} {unit}",
    }


def _ideal(crews: Sequence[int], values: Sequence[float]) -> dict[str, Any]:
    line = {"color": GREY, "dash": "dot", "width": 1.5}
    return _line("ideal", list(map(float, crews)), plain(values), line)


def _line(
    name: str, x: Sequence[float | None], y: Sequence[float | None], line: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        **{"type": "scatter", "mode": "lines", "name": name, "hoverinfo": "skip"},
        **{"x": list(x), "y": list(y), "line": {**line, "width": 1.5}},
    }


def _crews(curves: Sequence[Curve]) -> list[int]:
    return sorted({p.workers for curve in curves for p in curve.points})


def _workers(crews: Sequence[int]) -> dict[str, Any]:
    ticks = list(crews) if len(crews) <= 12 else None
    return axis("workers", **({"tickvals": ticks} if ticks else {}))


def _without_crew(cell: Mapping[str, Any]) -> str:
    crew = cell["spec"]["workers"]
    words = (f"{crew} worker", f"{crew} workers")
    rest = [part for part in cell["cell"].split(", ") if part not in words]
    return ", ".join(rest) or cell["spec"]["strategy"]


def _crew(curve: Curve, point: Gained) -> str:
    return f"{curve.name} and {many(point.workers, 'worker')}"


def _law(name: str, law: Usl) -> str:
    best = "no most in sight" if law.best is None else f"the most with {many(law.best, 'worker')}"
    return f"the law fitted to {name} (σ {law.sigma:.3f}, κ {law.kappa:.4f}) has {best}"


def _sentences(clauses: Sequence[str]) -> str:
    return " ".join(f"{clause[0].upper()}{clause[1:]}." for clause in clauses)


def _table(curves: Sequence[Curve], title: str, unit: str, digits: int) -> list[Column]:
    rows = [(curve.name, point) for curve in curves for point in curve.points]
    return [
        Column(title="cells", cells=[name for name, _ in rows], words=True),
        Column(title="workers", cells=[number(p.workers) for _, p in rows]),
        Column(title=title, unit=unit, cells=[number(p.value, digits) for _, p in rows]),
        Column(title="95 % interval", cells=[between(p.low, p.high, digits) for _, p in rows]),
    ]
