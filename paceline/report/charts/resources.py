"""What each role used over time: cores, memory, network and disk."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from paceline.report.charts.chart import Chart, plain
from paceline.report.charts.theme import axis, figure, of_role
from paceline.report.charts.thin import POINTS, thin
from paceline.report.layout import Column
from paceline.report.words import NONE, number
from paceline.types import Resources

MEGA = 1e6


class View(NamedTuple):
    """A thing that is used: `growing` counters are drawn as what was added in a second."""

    unit: str
    read: Callable[[Resources], float | None]
    growing: bool = False


VIEWS = {
    "CPU": View("CPU, % of one core", lambda s: 100 * s.cpu_seconds, growing=True),
    "memory": View("memory, MB", lambda s: s.memory_bytes / MEGA),
    "sent": View("sent, MB/s", lambda s: s.sent / MEGA, growing=True),
    "received": View("received, MB/s", lambda s: s.received / MEGA, growing=True),
    "no core": View(
        "could run, had no core, % of one core",
        lambda s: None if s.delay_seconds is None else 100 * s.delay_seconds,
        growing=True,
    ),
}


def resources(samples: Iterable[Resources], points: int = POINTS) -> Chart | None:
    """From the samples of a run, in the order of their time."""
    by_role: dict[str, list[Resources]] = {}
    for sample in samples:
        by_role.setdefault(sample.role, []).append(sample)
    found = {
        name: lines
        for name, view in VIEWS.items()
        if (lines := {role: line for role, own in by_role.items() if (line := _line(own, view))})
        and any(any(ys) for _, ys in lines.values())
    }
    if "CPU" not in found:
        return None
    put = 1.0
    views = {}
    for name, lines in found.items():
        traces = []
        for role, (xs, ys) in lines.items():
            thinned = thin(xs, ys, points)
            put = max(put, thinned.each)
            traces.append(
                {
                    **{"type": "scatter", "mode": "lines", "name": role},
                    **{"x": plain(thinned.x), "y": plain(thinned.mean)},
                    **{"line": of_role(role).line, "hovertemplate": "%{y:,.3g}"},
                }
            )
        views[name] = figure(
            traces,
            axis("seconds since the start"),
            axis(VIEWS[name].unit, rangemode="tozero"),
            hovermode="x unified",
            showlegend=True,
        )
    return Chart(
        name="resources",
        title="What each role used over time",
        says=_says(found),
        views=views,
        table=_table(found, list(by_role)),
        note=f"Each point is the mean of about {put:,.0f} samples." if put > 1 else "",
    )


Line = tuple[Sequence[float], Sequence[float]]


def _line(samples: Sequence[Resources], view: View) -> Line | None:
    """Its points; a counter that fell belongs to a new process, which began at nothing."""
    known = [(s.time, v) for s in samples if (v := view.read(s)) is not None]
    if not view.growing:
        return tuple(zip(*known, strict=True)) if known else None  # type: ignore[return-value]
    rates = [
        ((a + b) / 2, (after - before if after >= before else after) / (b - a))
        for (a, before), (b, after) in pairwise(known)
        if b > a
    ]
    return tuple(zip(*rates, strict=True)) if rates else None  # type: ignore[return-value]


def _says(found: Mapping[str, Mapping[str, Line]]) -> str:
    cpu = {role: _mean(ys) for role, (_, ys) in found["CPU"].items()}
    busiest = max(cpu, key=lambda role: cpu[role])
    told = f"{busiest} used most CPU, {cpu[busiest]:.0f} % of one core on average"
    if "memory" in found:
        most = {role: max(ys) for role, (_, ys) in found["memory"].items()}
        largest = max(most, key=lambda role: most[role])
        told += f"; {largest} held most memory, {number(most[largest])} MB"
    return f"{told}."


def _table(found: Mapping[str, Mapping[str, Line]], roles: Sequence[str]) -> list[Column]:
    columns = [Column(title="role", cells=roles, words=True)]
    for name, lines in found.items():
        _, _, unit = VIEWS[name].unit.partition(", ")
        for what, of in (("mean", _mean), ("peak", max)):
            cells = [number(of(lines[r][1]), 1) if r in lines else NONE for r in roles]
            columns.append(Column(title=f"{name}, {what}", unit=unit, cells=cells))
    return columns


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
