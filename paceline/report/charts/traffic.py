"""Who sent how much to whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paceline.report.charts.chart import Chart, plain
from paceline.report.charts.theme import axis, figure
from paceline.report.layout import Column
from paceline.report.words import NONE, number

# From nothing to much: lightness alone tells, in dark pages as in light ones.
SCALE = [[0, "#dce9f5"], [0.5, "#4a9bd1"], [1, "#083c6b"]]
SUPERVISOR = "supervisor"


def traffic(roles: Sequence[Mapping[str, Any]]) -> Chart | None:
    """From the roles of a run's summary: megabytes by sender and receiver.

    What both ends tell of is taken from the sender; what goes to the supervisor is left out.
    """
    moved: dict[tuple[str, str], float] = {}
    for role in roles:
        for peer in role.get("traffic") or ():
            one, other = role["role"], peer["peer"]
            if SUPERVISOR not in (one, other):
                moved[one, other] = peer["sent_mb"] or 0.0
                moved.setdefault((other, one), peer["received_mb"] or 0.0)
    if not any(moved.values()):
        return None
    senders = list(dict.fromkeys(one for one, _ in moved))
    takers = list(dict.fromkeys(other for _, other in moved))
    grid = [[moved.get((one, other)) for other in takers] for one in senders]
    (one, other), most = max(moved.items(), key=lambda pair: pair[1])
    fig = figure(
        [
            {
                **{"type": "heatmap", "x": takers, "y": senders, "z": [plain(row) for row in grid]},
                **{
                    "colorscale": SCALE,
                    "zmin": 0,
                    "zmax": most,
                    "xgap": 2,
                    "ygap": 2,
                    "hoverongaps": False,
                },
                "colorbar": {"title": {"text": "MB"}, "thickness": 12, "outlinewidth": 0},
                "texttemplate": "%{z:.3s}" if len(senders) * len(takers) <= 100 else "",
                "hovertemplate": "%{y} to %{x}: %{z:,.1f} MB<extra></extra>",
            }
        ],
        axis("to", type="category", showgrid=False),
        axis("from", type="category", autorange="reversed", showgrid=False),
        height=140 + 36 * len(senders),
    )
    return Chart(
        name="traffic",
        title="Who sent how much to whom",
        says=f"{number(sum(moved.values()), 1)} MB were sent in all; the most from {one} to "
        f"{other}, {number(most, 1)} MB.",
        views={"": fig},
        table=[
            Column(title="from, to", cells=senders, words=True),
            *(
                Column(
                    title=taker,
                    unit="MB",
                    cells=[number(row[n], 1) if row[n] is not None else NONE for row in grid],
                )
                for n, taker in enumerate(takers)
            ),
        ],
    )
