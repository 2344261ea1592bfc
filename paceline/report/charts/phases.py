"""Where each role's time went: a bar for each, its phases one after another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paceline.report.charts.chart import Chart, plain
from paceline.report.charts.theme import GREY, SPANS, axis, figure
from paceline.report.layout import Column
from paceline.report.words import NONE, number
from paceline.types import FINE

TOLD = 6  # that are named in the sentence


def phases(
    spent: Mapping[str, Mapping[str, float]],
    title: str = "Where the time of each role went",
    of: str = "role",
) -> Chart | None:
    """From seconds by role, or whatever else is told by `of`, and span.

    `spent_by` has them from the roles of a run's summary.
    """
    known = {role: own for role, own in spent.items() if sum(own.values()) > 0}
    if not known:
        return None
    names = [name for name in SPANS if any(own.get(name, 0) > 0 for own in known.values())]
    whole = {role: sum(own.values()) for role, own in known.items()}
    share = {
        name: [100 * own.get(name, 0.0) / whole[role] for role, own in known.items()]
        for name in names
    }
    bars = [
        {
            **{"type": "bar", "orientation": "h", "name": name},
            **{"y": list(known), "x": plain(share[name])},
            "customdata": plain(own.get(name, 0.0) for own in known.values()),
            "marker": {"color": SPANS.get(name, GREY)},
            "hovertemplate": "%{y}: %{x:.1f} % (%{customdata:.3g} s)",
        }
        for name in names
    ]
    fig = figure(
        bars,
        axis(f"% of the {of}'s time", range=[0, 100]),
        axis("", autorange="reversed"),
        barmode="stack",
        height=120 + 34 * len(known),
        legend={"orientation": "h", "traceorder": "normal", "yanchor": "bottom", "y": 1.02, "x": 0},
    )
    return Chart(
        name="phases",
        title=title,
        says=_says(known, whole) if of == "role" else _each(known, whole),
        views={"": fig},
        table=[
            Column(title=of, cells=list(known), words=True),
            Column(title="time", unit="s", cells=[number(whole[role], 2) for role in known]),
            *(
                Column(
                    title=name, unit="%", cells=[number(v, 1) if v else NONE for v in share[name]]
                )
                for name in names
            ),
        ],
    )


def spent_by(roles: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """Seconds by the finest names that a summary's roles know."""
    found = {}
    for role in roles:
        spans, coarse = role.get("spans") or {}, role.get("phases") or {}
        whole = coarse and any(spans.get(name) is None for name in FINE if name in spans)
        fine = {k: v for k, v in spans.items() if v is not None and not (whole and k in FINE)}
        found[role["role"]] = {**coarse, **fine} if whole or not spans else fine
    return {role: own for role, own in found.items() if own}


def _says(known: Mapping[str, Mapping[str, float]], whole: Mapping[str, float]) -> str:
    told = []
    for kind in ("worker", "server"):
        own = [role for role in known if role.startswith(f"{kind}-")]
        seconds = sum(whole[role] for role in own)
        if seconds:
            sums: dict[str, float] = {}
            for role in own:
                for name, spent in known[role].items():
                    sums[name] = sums.get(name, 0.0) + spent
            most = sorted(sums.items(), key=lambda pair: -pair[1])[:3]
            parts = [
                f"{name} {100 * s / seconds:.0f} %" for name, s in most if s >= 0.005 * seconds
            ]
            told.append(f"{kind}s spent most on {', '.join(parts)}")
    if not told:
        return _each(known, whole)
    text = "; ".join(told)
    return f"{text[0].upper()}{text[1:]}."


def _each(known: Mapping[str, Mapping[str, float]], whole: Mapping[str, float]) -> str:
    """What most of the time went to, one by one."""
    most = {name: max(own, key=own.__getitem__) for name, own in known.items()}
    parts = [f"{n}: {most[n]}, {100 * own[most[n]] / whole[n]:.0f} %" for n, own in known.items()]
    return f"What took most of the time: {'; '.join(parts[:TOLD])}" + (
        "; and so on." if len(parts) > TOLD else "."
    )
