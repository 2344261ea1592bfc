"""What went wrong and when: a line for each role, from the fault until it was over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paceline.report.charts.chart import Chart, plain
from paceline.report.charts.theme import ORANGE, RED, axis, figure
from paceline.report.layout import Column
from paceline.report.words import duration, many


def faults(found: Sequence[Mapping[str, Any]], seconds: float | None) -> Chart | None:
    """From a summary's `faults` and the seconds of the whole run."""
    if not found:
        return None
    roles = list(dict.fromkeys(fault["role"] for fault in found))
    end = seconds or max(f["time"] + (f["seconds"] or 0) for f in found)
    bars = []
    for name, colour, injected in (("on its own", RED, False), ("on purpose", ORANGE, True)):
        own = [fault for fault in found if bool(fault["injected"]) is injected]
        if own:
            bars.append(
                {
                    **{"type": "bar", "orientation": "h", "name": name},
                    "y": [fault["role"] for fault in own],
                    "base": plain(fault["time"] for fault in own),
                    "x": plain(_lasted(fault, end) for fault in own),
                    "customdata": [_told(fault) for fault in own],
                    "marker": {"color": colour, "line": {"color": colour, "width": 2}},
                    "hovertemplate": "%{y}, at %{base:.1f} s: %{customdata}<extra></extra>",
                }
            )
    fig = figure(
        bars,
        axis("seconds since the start", range=[0, end]),
        axis("", categoryorder="array", categoryarray=roles[::-1]),
        barmode="overlay",
        showlegend=len(bars) > 1,
        height=110 + 34 * len(roles),
    )
    over = [fault["seconds"] for fault in found if fault["seconds"] is not None]
    told = many(len(found), "fault")
    if over:
        told += f"; the longest was over after {duration(max(over))}"
    if len(over) < len(found):
        told += f"; {many(len(found) - len(over), 'fault')} never was"
    return Chart(
        name="faults",
        title="Faults",
        says=f"{told}.",
        views={"": fig},
        table=[
            Column(title="at", cells=[duration(f["time"]) for f in found]),
            Column(title="role", cells=[f["role"] for f in found], words=True),
            Column(title="what", cells=[f["what"] for f in found], words=True),
            Column(title="over after", cells=[duration(f["seconds"]) for f in found]),
        ],
    )


def _lasted(fault: Mapping[str, Any], end: float) -> float:
    """Until the end where it was never over."""
    lasted = fault["seconds"]
    return max(0.0, end - fault["time"]) if lasted is None else float(lasted)


def _told(fault: Mapping[str, Any]) -> str:
    lasted = fault["seconds"]
    return f"{fault['what']}, " + ("never over" if lasted is None else f"over after {lasted:.2f} s")
