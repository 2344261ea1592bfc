"""Verdicts on a page: what held a run back, its numbers, and what to change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paceline.report.diagnosis import gain_told, value_told, who_is
from paceline.report.layout import Column
from paceline.report.page.document import Grid, Part, Words
from paceline.report.words import NONE, percent

TOLD = 10  # numbers of a cause


def judged(verdict: Mapping[str, Any]) -> list[Part]:
    """Of one run."""
    if not verdict.get("sentence"):
        return []
    parts: list[Part] = []
    found = verdict["findings"]
    if found:
        parts.append(Words(text=f"Confidence {verdict['confidence']}: {verdict['why']}."))
    if verdict["conflicts"]:
        parts.append(Words(text="What speaks against it:", items=verdict["conflicts"]))
    if found:
        parts.append(_causes(found))
        parts += [evidence for each in found[:1] for evidence in _evidence(each)]
    advice = [each for cause in found for each in cause["advice"]]
    if advice:
        told = [f"{each['text']} ({gain_told(each['gain'])})" for each in advice]
        parts.append(
            Words(
                text="Advice, the first cause's first. In brackets how many times the samples a "
                "second there should be:",
                items=told,
                numbered=True,
            )
        )
    return parts


def judged_cells(verdicts: Mapping[str, Mapping[str, Any]]) -> Grid | None:
    """One row a cell, by the verdict of its typical run."""
    known = {cell: verdict for cell, verdict in verdicts.items() if verdict.get("sentence")}
    if not known:
        return None
    first = [next(iter(verdict["findings"]), None) for verdict in known.values()]
    best = [next(iter(cause["advice"]), None) if cause else None for cause in first]
    return Grid(
        caption="What held each cell back, by its run of median speed",
        columns=[
            Column(title="cell", cells=list(known), words=True),
            Column(title="verdict", cells=[v["sentence"] for v in known.values()], words=True),
            Column(title="advice", cells=[a["text"] if a else NONE for a in best], words=True),
            Column(title="gain", cells=[gain_told(a["gain"]) if a else NONE for a in best]),
            Column(title="confidence", cells=[v["confidence"] for v in known.values()], words=True),
        ],
    )


def _causes(found: Sequence[Mapping[str, Any]]) -> Grid:
    return Grid(
        caption="Where the time went, what could gain most first",
        columns=[
            Column(title="cause", cells=[each["cause"] for each in found], words=True),
            Column(title="time", unit="%", cells=[percent(each["share"], 0) for each in found]),
            Column(title="who", cells=[who_is(each["roles"]) for each in found], words=True),
            Column(title="in words", cells=[each["sentence"] for each in found], words=True),
            Column(title="confidence", cells=[each["confidence"] for each in found], words=True),
        ],
    )


def _evidence(cause: Mapping[str, Any]) -> list[Grid]:
    facts = cause["evidence"][:TOLD]
    if not facts:
        return []
    return [
        Grid(
            caption=f"Evidence for {cause['cause']}",
            columns=[
                Column(title="what", cells=[fact["what"] for fact in facts], words=True),
                Column(title="value", cells=[value_told(fact) for fact in facts]),
                Column(title="from", cells=[fact["source"] for fact in facts], words=True),
            ],
        )
    ]
