"""A sweep's answer to its question, in plain sentences; an honest no is one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from paceline.report.words import Summary, many, percent

NUMBERS = {2: "a second worker makes", 3: "three workers make", 4: "four workers make"}
ALONE = "single"
MOST_REPEATS = 50  # that anybody would make


def answer(summary: Summary) -> str:
    """What the cells measured so far say, a sentence for each baseline."""
    cells = summary["cells"]
    bases = [cell for cell in cells if cell["base"] == cell["cell"]]
    told = [_against(base, cells, summary.get("target")) for base in bases]
    failed = summary["trials"]["failed"]
    if failed:
        told.append(f"{failed} of {many(_made(summary), 'run')} failed.")
    lost = [c["cell"] for c in cells if c["base"] not in {base["cell"] for base in bases}]
    if lost:
        told.append(f"There is nothing to hold these against: {'; '.join(lost)}.")
    return " ".join(sentence for sentence in told if sentence) or "Nothing has been measured yet."


def _against(base: Summary, cells: Sequence[Summary], target: Summary | None) -> str:
    own = [c for c in cells if c["base"] == base["cell"] and c["gain"]]
    known = [c for c in own if c["gain"]["throughput"]["value"] is not None]
    if not known:
        return ""
    known.sort(key=lambda cell: cell["gain"]["throughput"]["value"], reverse=True)
    clauses = [_speed(cell, base) + _rest(cell, target) for cell in known]
    who = "one worker" if all(_more(cell, base) for cell in known) else base["cell"]
    if all((cell["gain"]["throughput"]["high"] or math.inf) < 1 for cell in known):
        clauses.insert(0, f"{who} is the fastest here")
    elif not any(_faster(cell) for cell in known):
        clauses.insert(0, f"nothing was shown to be faster than {who}")
    told = "; ".join(clauses)
    return f"{told[0].upper()}{told[1:]}.{_undecided(known)}"


def _undecided(cells: Sequence[Summary]) -> str:
    """What it takes to tell where nothing was told."""
    needed = [
        c["gain"]["repeats_needed"] for c in cells if not c["gain"]["throughput"]["different"]
    ]
    repeats = max(cell["repeats"] for cell in cells)
    if not needed:
        return ""
    if repeats < 2:
        return " One repeat does not tell what is noise: give it --repeats 3, or more."
    if None in needed or max(needed) > MOST_REPEATS:
        return " Runs of one cell vary too much here to show 5 %; let nothing else run meanwhile."
    if max(needed) > repeats:
        return f" About {max(needed)} repeats would show a difference of 5 %."
    return ""


def _speed(cell: Summary, base: Summary) -> str:
    gain = cell["gain"]["throughput"]
    told = f"{gain['value']:.2f} times"
    bounds = _bounds(gain, "{:.2f}")
    how = _without_crew(cell)
    if gain["different"] is False:
        return f"{cell['cell']}, {told} as fast, is within the noise of {base['cell']}{bounds}"
    if _more(cell, base):
        who = NUMBERS.get(_crew(cell), f"{_crew(cell)} workers make")
        return f"with {how} {who} it {told} as fast{bounds}"
    return f"{cell['cell']} is {told} as fast as {base['cell']}{bounds}"


def _rest(cell: Summary, target: Summary | None) -> str:
    """How soon it learned, and whether it learned as well."""
    told = ""
    gain = cell["gain"]["to_target"]
    if target and gain["value"] is not None:
        speed = cell["gain"]["throughput"]
        apart = gain["different"] is not False or speed["different"] is not False
        if apart:
            told = f", {gain['value']:.2f} times to {aim(target)}{_bounds(gain, '{:.2f}')}"
    elif target and cell["reached"] < cell["repeats"]:
        told = f", but met {aim(target)} in {cell['reached']} of {many(cell['repeats'], 'run')}"
    right = cell["gain"]["accuracy"]
    if right["different"]:
        points = 100 * right["value"]
        told += f", {abs(points):.2f} points {'more' if points > 0 else 'less'} accurate"
    return told


def aim(target: Summary) -> str:
    """`98.12 % accuracy`, `a loss of 0.0612`"""
    if target["metric"] == "accuracy":
        return f"{percent(target['value'])} % accuracy"
    return f"a loss of {target['value']:.4f}"


def _crew(cell: Summary) -> int:
    return int(cell["spec"]["workers"])


def _without_crew(cell: Summary) -> str:
    workers = many(_crew(cell), "worker")
    return ", ".join(part for part in cell["cell"].split(", ") if part != workers) or workers


def _more(cell: Summary, base: Summary) -> bool:
    """Whether it is about more workers than one alone."""
    return base["spec"]["strategy"] == ALONE and _crew(cell) > _crew(base)


def _faster(cell: Summary) -> bool:
    low = cell["gain"]["throughput"]["low"]
    return low is None or bool(low > 1)


def _bounds(gain: Mapping[str, Any], form: str) -> str:
    if gain["low"] is None or gain["high"] is None:
        return ""
    return f" ({form.format(gain['low'])}–{form.format(gain['high'])})"


def _made(summary: Summary) -> int:
    return int(summary["trials"]["done"] + summary["trials"]["failed"])
