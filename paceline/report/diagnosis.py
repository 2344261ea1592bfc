"""What `paceline diagnose` shows: the verdict, where the time went, evidence and advice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from paceline.diagnose.trial import Tried, sentence
from paceline.report.layout import Column, Fitting, stacked, table
from paceline.report.tables import header, headline
from paceline.report.words import NONE, Summary, number, percent

BAR = 40  # characters
TOLD = 10  # numbers of the bottleneck

# What a bar is made of, with its letter and colour: of workers, then of servers.
SPANS = {
    "data": ("d", "yellow"),
    "copy": ("c", "yellow"),
    "forward": ("F", "green"),
    "backward": ("B", "green"),
    "compute": ("C", "green"),
    "encode": ("e", "magenta"),
    "push": (">", "blue"),
    "pull": ("<", "blue"),
    "exchange": ("x", "blue"),
    "wait": (".", "red"),
    "update": ("u", "cyan"),
    "evaluate": ("E", "bright_magenta"),
    "checkpoint": ("k", "white"),
    "snapshot": ("s", "white"),
    "receive": ("<", "blue"),
    "decode": ("e", "magenta"),
    "apply": ("u", "cyan"),
    "send": (">", "blue"),
    "other": ("o", "white"),
    "gate": (".", "red"),
    "idle": (" ", "dim"),
}


def as_object(summary: Summary) -> dict[str, Any]:
    """As `--json` tells it: which run, and its verdict."""
    named = {key: summary[key] for key in ("run", "dir", "status", "throughput")}
    return named | {"verdict": summary["verdict"]}


def diagnosis(summary: Summary) -> RenderableType:
    """Everything that a verdict has to say."""
    verdict = summary["verdict"]
    return stacked(
        header(summary),
        headline(summary),
        _verdict(verdict),
        bars(summary),
        _causes(verdict),
        _evidence(verdict),
        _advice(verdict),
    )


def _verdict(verdict: Mapping[str, Any]) -> RenderableType:
    name, _, rest = verdict["sentence"].partition(":")
    colour = "green" if verdict["bottleneck"] == "compute" else "red"
    told: list[RenderableType] = [Text.assemble((f"{name}:", f"bold {colour}"), (rest, "bold"))]
    if verdict["findings"]:
        told.append(Text(f"confidence {verdict['confidence']}: {verdict['why']}.", style="dim"))
    told += [Text(f"but {line}", style="yellow") for line in verdict["conflicts"]]
    return Group(*told)


def bars(summary: Summary) -> RenderableType | None:
    """Where each role's time went, as a bar."""
    rows = [(role["role"], spent) for role in summary["roles"] if (spent := _spent(role))]
    if not rows:
        return None
    used = {name: None for _, spent in rows for name in spent}
    key = Text(style="dim")
    for name in used:
        letter, colour = SPANS[name]
        key.append(f"{letter} ", style=colour).append(f"{name}  ")
    width = max(len(role) for role, _ in rows)
    lines = [Text(f"{role:{width}}  ", style="cyan").append(bar(spent)) for role, spent in rows]
    return Group(*lines, key)


def _spent(role: Summary) -> dict[str, float]:
    """Seconds by the finest names known, those that took any time."""
    spans = {k: v for k, v in (role.get("spans") or {}).items() if v is not None}
    found = spans or role.get("phases") or {}
    whole = sum(found.values())
    return {k: v / whole for k, v in found.items() if k in SPANS and v > 0} if whole else {}


def bar(shares: Mapping[str, float], width: int = BAR) -> Text:
    """So many characters, shared out by largest remainder."""
    exact = {name: share * width for name, share in shares.items()}
    cells = {name: int(size) for name, size in exact.items()}
    left = min(width, round(sum(exact.values()))) - sum(cells.values())
    for name in sorted(exact, key=lambda n: cells[n] - exact[n])[: max(0, left)]:
        cells[name] += 1
    text = Text("▏")
    for name, count in cells.items():
        letter, colour = SPANS[name]
        text.append(letter * count, style=colour)
    return text.append("▕")


def _causes(verdict: Mapping[str, Any]) -> RenderableType | None:
    """All that costs a notable part of the time."""
    found = verdict["findings"]
    if len(found) < 2:
        return None
    return table(
        [
            Column(title="cause", cells=[f["cause"] for f in found], words=True, style="cyan"),
            Column(title="time", unit="%", cells=[percent(f["share"], 0) for f in found]),
            Column(title="who", cells=[who_is(f["roles"]) for f in found], words=True),
            Column(title="confidence", cells=[f["confidence"] for f in found], words=True),
        ]
    )


def who_is(roles: list[str]) -> str:
    return ", ".join(roles[:3]) + (f" and {len(roles) - 3} more" if len(roles) > 3 else "") or NONE


def _evidence(verdict: Mapping[str, Any]) -> RenderableType | None:
    """The numbers behind the bottleneck, and where they come from."""
    facts = [fact for found in verdict["findings"][:1] for fact in found["evidence"]][:TOLD]
    if not facts:
        return None
    what = Column(title="evidence", cells=[fact["what"] for fact in facts], words=True)
    value = Column(title="", cells=[value_told(fact) for fact in facts])
    source = Column(title="from", cells=[fact["source"] for fact in facts], words=True, style="dim")
    return Fitting(table([what, value, source]), table([what, value]))


def value_told(fact: Mapping[str, Any]) -> str:
    value = fact["value"]
    digits = 0 if abs(value) >= 100 or value == int(value) else 1 if abs(value) >= 10 else 2
    return f"{number(value, digits)} {fact['unit']}".strip()


def _advice(verdict: Mapping[str, Any]) -> RenderableType | None:
    advice = [each for found in verdict["findings"][:1] for each in found["advice"]]
    if not advice:
        return None
    lines = [Text("advice", style="bold")]
    for n, each in enumerate(advice, start=1):
        hand = "" if each["changes"] else ", by hand"
        lines.append(
            Text(f"{n}. {each['text']}").append(f"  {gain_told(each['gain'])}{hand}", style="green")
        )
    if any(each["changes"] for each in advice):
        lines.append(Text("--try runs it briefly with the first and without", style="dim"))
    return Group(*lines)


def gain_told(gain: Mapping[str, float]) -> str:
    if gain["low"] <= 1.0:
        return f"up to {gain['high']:.2f}x"
    return f"{gain['low']:.2f}x to {gain['high']:.2f}x"


def trial(tried: Tried) -> RenderableType:
    """Predicted against actual."""
    turns = range(1, len(tried.before) + 1)
    return stacked(
        table(
            [
                Column(title="turn", cells=[str(turn) for turn in turns]),
                Column(title="as it was", unit="samples/s", cells=list(map(number, tried.before))),
                Column(title="advised", unit="samples/s", cells=list(map(number, tried.after))),
                Column(title="gain", unit="x", cells=[number(gain, 2) for gain in tried.gains]),
            ]
        ),
        Text(sentence(tried), style="bold green" if tried.inside else "bold yellow"),
    )
