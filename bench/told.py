"""The record of a bench's findings as Markdown tables."""

from __future__ import annotations

from typing import Any


def body(record: dict[str, Any]) -> list[str]:
    """The tables of the page."""
    lines = []
    if record["rows"]:
        head = record["head"]
        numbers = "---:|" * (len(head) - 1)
        lines += [_line(head), f"|---|{numbers}", *map(_line, record["rows"]), ""]
    lines += ["| wanted | measured | |", "|---|---:|---|"]
    for what, measured, met in record["wanted"]:
        lines.append(_line((what, measured, "met" if met else "not met")))
    return [*lines, ""]


def _line(cells: list[str] | tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"
