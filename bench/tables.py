"""Rates of an interleaved run as Markdown tables. A ratio is that of two rates of one repeat."""

from __future__ import annotations

import statistics
from collections.abc import Iterable

from bench.catalog import WORKERS, Bar, Model

# Samples a second, by contender, one for each repeat.
Rates = dict[str, list[float]]


def ratios(rates: Rates, name: str, against: str) -> list[float]:
    return [a / b for a, b in zip(rates[name], rates[against], strict=True)]


def spread(values: list[float], form: str) -> str:
    """The median, and the range in brackets."""
    middle = format(statistics.median(values), form)
    return f"{middle} ({format(min(values), form)} – {format(max(values), form)})"


def table(model: Model, rates: Rates, against: Iterable[str]) -> list[str]:
    """A line for each contender, with its ratio to each of `against` that was measured."""
    measured = [other for other in against if other in rates]
    heads = "".join(f" of {_quoted(other)} |" for other in measured)
    lines = [
        f"### {model.task} [{model.batch}], {WORKERS} workers",
        "",
        f"| | samples/s |{heads}",
        f"|---|---:|{'---:|' * len(measured)}",
    ]
    for name, values in rates.items():
        parts = [spread(ratios(rates, name, other), ".2f") for other in measured]
        lines.append(f"| {' | '.join([name, spread(values, ',.0f'), *parts])} |")
    return [*lines, ""]


def wanted(all_rates: dict[str, Rates], bars: Iterable[Bar]) -> list[str]:
    """A line for each bar whose both sides were measured: met if the median ratio is enough."""
    lines = []
    for bar in bars:
        rates = all_rates.get(bar.model, {})
        if bar.name in rates and bar.against in rates:
            found = ratios(rates, bar.name, bar.against)
            met = "met" if statistics.median(found) >= bar.least else "not met"
            asked = f"{bar.name} on {bar.model}: {bar.least}x {_quoted(bar.against)}"
            lines.append(f"| {asked} | {spread(found, '.2f')} | {met} |")
    if not lines:
        return []
    return ["| wanted | measured (median, range) | |", "|---|---:|---|", *lines, ""]


def _quoted(name: str) -> str:
    """Names of strategies are code; other names are words."""
    return f"`{name}`" if name.islower() else name
