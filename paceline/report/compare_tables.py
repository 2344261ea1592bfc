"""A comparison as tables, from the object that `paceline compare --json` prints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from paceline.report.answer import aim
from paceline.report.layout import Column, stacked, table
from paceline.report.words import NONE, Summary, number

# What is compared: its title, its digits, and what a value is multiplied by.
FIGURES = {
    "throughput": ("samples/s", 0, 1),
    "epoch": ("epoch, s", 2, 1),
    "to_target": ("to target, s", 2, 1),
    "total": ("whole run, s", 2, 1),
    "accuracy": ("accuracy, %", 2, 100),
    "loss": ("loss", 4, 1),
}
DIFFERENCES = ("accuracy", "loss")


def compare_report(found: Summary) -> RenderableType:
    """What differs in the request, then in the results, and which of that is noise."""
    return stacked(
        Text(f"A  {found['a']['name']}\nB  {found['b']['name']}", style="bold"),
        _apart("What was asked", found["spec"]),
        _apart("Where it ran", found["origin"]),
        *(table(result_columns(cell)) for cell in found["cells"]),
        _only(found),
        Text(f"Target: {aim(found['target'])}.", style="dim") if found["target"] else None,
        Text(found["sentence"], style="bold"),
    )


def _apart(title: str, apart: Mapping[str, Any]) -> RenderableType:
    if not apart:
        return Text(f"{title}: the same.")
    return table(apart_columns(title, apart))


def apart_columns(title: str, apart: Mapping[str, Any]) -> list[Column]:
    """What the two say differently, a row each."""
    return [
        Column(title=title, cells=list(apart), words=True, style="cyan"),
        Column(title="A", cells=[_value(each["a"]) for each in apart.values()], words=True),
        Column(title="B", cells=[_value(each["b"]) for each in apart.values()], words=True),
    ]


def result_columns(cell: Summary) -> list[Column]:
    """A row for each figure that both have: what it was, how it changed, whether that is any."""
    rows = [(key, *told) for key, told in FIGURES.items() if cell[key]["change"]]
    title = cell["cell"] or "What came of it"
    runs = f"{cell['runs']['a']} and {cell['runs']['b']} runs"
    return [
        Column(title=title, unit=runs, cells=[row[1] for row in rows], words=True, style="cyan"),
        *(
            Column(
                title=side.upper(),
                cells=[number(cell[key][side] * times, digits) for key, _, digits, times in rows],
            )
            for side in ("a", "b")
        ),
        Column(title="B to A", cells=[_change(key, cell[key]["change"]) for key, *_ in rows]),
        Column(
            title="",
            cells=[_verdict(cell[key]["change"]["different"]) for key, *_ in rows],
            words=True,
        ),
    ]


def _change(key: str, change: Mapping[str, Any]) -> str:
    """`0.952x (0.931–0.974)`, `-0.12 (-0.30–0.06)`"""
    _, digits, times = FIGURES[key]
    digits, unit = (digits, "") if key in DIFFERENCES else (3, "x")
    sign = "+" if key in DIFFERENCES else ""
    value = f"{change['value'] * times:{sign}.{digits}f}{unit}"
    if change["low"] is None:
        return value
    low, high = (f"{change[end] * times:{sign}.{digits}f}" for end in ("low", "high"))
    return f"{value} ({low} to {high})"


def _verdict(different: bool | None) -> str:
    return {True: "different", False: "noise"}.get(different, "cannot be told")  # type: ignore[arg-type]


def _only(found: Summary) -> Text | None:
    told = [
        f"Only in {side.upper()}: {'; '.join(found[f'only_{side}'])}."
        for side in ("a", "b")
        if found[f"only_{side}"]
    ]
    return Text(" ".join(told), style="yellow") if told else None


def _value(value: Any) -> str:
    return NONE if value is None else str(value)
