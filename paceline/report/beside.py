"""Our softmax runs with the figures published in 2019 beside them, role by role."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rich.console import RenderableType

from paceline.report.layout import Column, Fitting, inside_note, named, stacked, table
from paceline.report.published import PublishedRole, published_softmax
from paceline.report.words import NONE, Summary, number, percent

Ours = Callable[[Summary], str]
Theirs = Callable[[PublishedRole], str]

# What is compared: its title, its unit, ours from a role of a summary, theirs as published.
FIGURES: list[tuple[str, str, Ours, Theirs]] = [
    ("accuracy", "%", lambda r: percent(r.get("accuracy")), lambda p: percent(p.accuracy)),
    ("time", "s", lambda r: number(r.get("seconds"), 1), lambda p: number(p.seconds, 1)),
    ("CPU", "%", lambda r: number(r.get("cpu_pct")), lambda p: p.cpu_pct),
    ("memory", "MB", lambda r: number(r.get("memory_mb")), lambda p: p.memory_mb),
    ("traffic", "Mbit/s", lambda r: number(_traffic(r)), lambda p: p.network_mbit_s),
]


def beside_published(summaries: Iterable[Summary]) -> RenderableType:
    """One row a role; each of our figures has the published one to its right."""
    summaries = list(summaries)
    columns = beside_columns(summaries)
    names, pairs = columns[:2], columns[2:]
    strategies = [run["spec"]["strategy"] for run in summaries for _ in run["roles"]]

    def grid(some: list[Column]) -> RenderableType:
        return table([*names, *some], groups=strategies)

    both = Fitting(grid(pairs), stacked(grid(pairs[:6]), grid(pairs[6:])))
    return stacked(both, inside_note([role for run in summaries for role in run["roles"]]))


def beside_columns(summaries: Iterable[Summary]) -> list[Column]:
    """Strategy and role, then pairs of figures: ours and theirs."""
    published = {(row.strategy, row.role): row for row in published_softmax()}
    rows = [(run["spec"]["strategy"], role) for run in summaries for role in run["roles"]]
    strategies = [strategy for strategy, _ in rows]
    names = [
        Column(title="strategy", cells=_once(strategies), words=True, style="bold"),
        Column(title="role", cells=[named(role) for _, role in rows], words=True, style="cyan"),
    ]
    theirs = [published.get((strategy, role["role"])) for strategy, role in rows]
    pairs: list[Column] = []
    for title, unit, our, their in FIGURES:
        cells = [(their(row) or NONE) if row else NONE for row in theirs]
        pairs += [
            Column(title=title, unit=unit, cells=[our(role) for _, role in rows]),
            Column(title="2019", cells=cells, style="dim"),
        ]
    return [*names, *pairs]


def _once(names: list[str]) -> list[str]:
    """Each name where it first stands, blanks below it."""
    return [name if i == 0 or names[i - 1] != name else "" for i, name in enumerate(names)]


def _traffic(role: Summary) -> float | None:
    """Bytes that crossed the transport, both ways, as the published tables count a network."""
    moved, seconds = (
        (role.get("sent_mb") or 0) + (role.get("received_mb") or 0),
        role.get("seconds"),
    )
    return 8 * moved / seconds if moved and seconds else None
