"""What came of advice that was tried, as Markdown tables."""

from __future__ import annotations

from typing import Any

DIRECTION, INSIDE = 5, 4  # of the advice that was tried, at least


def body(record: dict[str, Any]) -> list[str]:
    """The tables of the page."""
    found = record["situations"]
    tried = [each["tried"] for each in found if each["tried"]]
    right = sum(each["wanted"] == each["found"] for each in found)
    moved = sum(each["actual"]["value"] > 1 for each in tried)
    inside = sum(each["inside"] for each in tried)
    return [
        "| situation | verdict | advice tried | predicted | gain (range of turns) | inside |",
        "|---|---|---|---:|---:|---|",
        *map(row, found),
        "",
        "| wanted | measured | |",
        "|---|---:|---|",
        _met("every verdict right, with its roles", right, len(found), len(found)),
        _met(f"at least {DIRECTION} advices tried that bring more", moved, len(tried), DIRECTION),
        _met(f"at least {INSIDE} of them inside the range", inside, len(tried), INSIDE),
        "",
    ]


def row(told: dict[str, Any]) -> str:
    cause = told["found"][0] + ("" if told["wanted"] == told["found"] else " (wrong)")
    tried = told["tried"]
    if tried is None:
        return f"| {told['name']} | {cause} | by hand | – | – | – |"
    text = tried["advice"].partition(":")[0]
    low, high = (f"{tried['predicted'][end]:.2f}" for end in ("low", "high"))
    gain, least, most = (f"{tried['actual'][end]:.2f}" for end in ("value", "low", "high"))
    inside = "yes" if tried["inside"] else "no"
    return (
        f"| {told['name']} | {cause} | `{text}` | {low} – {high} | {gain} ({least} – {most}) "
        f"| {inside} |"
    )


def _met(wanted: str, count: int, of: int, least: int) -> str:
    return f"| {wanted} | {count} of {of} | {'met' if count >= least else 'not met'} |"
