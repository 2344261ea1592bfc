"""How many updates behind the parameters were from which a gradient was made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paceline.report.charts.chart import Chart, plain
from paceline.report.charts.theme import axis, figure, of_role
from paceline.report.layout import Column
from paceline.report.words import number

BARS = 40  # of staleness, beyond which the rest is one bar


def staleness(roles: Sequence[Mapping[str, Any]]) -> Chart | None:
    """From the roles of a run's summary; None for strategies in step."""
    known = {role["role"]: role["staleness"] for role in roles if role.get("staleness")}
    if not known:
        return None
    counts = {
        role: {int(value): int(count) for value, count in told["histogram"].items()}
        for role, told in known.items()
    }
    most = max(told["max"] for told in known.values())
    last = min(most, BARS)
    labels = [str(n) for n in range(last + 1)]
    if most > last:
        labels[-1] = f"{last}+"
    bars = []
    for role, own in counts.items():
        whole = sum(own.values())
        values = [own.get(n, 0) for n in range(last)]
        values.append(sum(count for value, count in own.items() if value >= last))
        bars.append(
            {
                **{"type": "bar", "name": role, "x": labels},
                "y": plain(100 * value / whole for value in values),
                "marker": {"color": of_role(role).colour},
                "hovertemplate": "%{y:.2f} % of steps were %{x} behind",
            }
        )
    fig = figure(
        bars,
        axis("updates behind", type="category"),
        axis("% of the worker's steps", rangemode="tozero"),
        showlegend=len(bars) > 1,
    )
    steps = {role: sum(own.values()) for role, own in counts.items()}
    mean = sum(known[role]["mean"] * n for role, n in steps.items()) / sum(steps.values())
    return Chart(
        name="staleness",
        title="Staleness of gradients",
        says=f"On average a gradient was {number(mean, 2)} updates behind, and at most {most}.",
        views={"": fig},
        table=[
            Column(title="role", cells=list(known), words=True),
            Column(title="steps", cells=[number(steps[role]) for role in known]),
            Column(title="mean", cells=[number(told["mean"], 2) for told in known.values()]),
            Column(title="most", cells=[number(told["max"]) for told in known.values()]),
        ],
    )
