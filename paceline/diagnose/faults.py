"""The faults of a run, and how long each took to get over: from events and steps alone.

    injected ─► (frozen) ─► died ─► back ─► its next step          one fault, told in several events
        └────────────── seconds ───────────────┘

A role has recovered when it takes steps again; where workers go in rounds, when all of them do. A
role that takes no steps, such as a server, has recovered when the workers do.

Workers that come and go are told with the faults: one that comes is there with its first step, one
that goes is done without when the others take steps again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from paceline.errors import SpecError
from paceline.spec.inject import injection
from paceline.types import Event

Ends = Mapping[str, npt.NDArray[np.float64]]  # by worker: when each of its steps ended, in order

NEVER = float("inf")
SEEN = {"frozen": "frozen", "died": "killed", "absent": "not heard"}  # what an event tells


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """`time` is seconds into the run; `seconds` until recovery is None where there was none."""

    time: float
    role: str
    what: str
    injected: bool
    seconds: float | None


@dataclass(slots=True)
class _Case:
    """A fault while its events are read. No step before `mark` is a sign of recovery."""

    time: float
    role: str
    what: str
    mark: float
    injected: bool = False
    up: float | None = None  # told to be up again


def faults(events: Iterable[Event], ends: Ends, *, in_rounds: bool) -> list[Fault]:
    """Every fault, in the order of their beginnings."""
    events = list(events)
    cases: list[_Case] = []
    latest: dict[str, _Case] = {}
    for event in events:
        role, now = event.role, event.time
        case = latest.get(role)
        if case is not None and (case.up is not None or _after(ends, role, case.mark) <= now):
            case = None  # it was over by then
        match event.kind:
            case "injected":
                latest[role] = _injected(event, steps=role in ends)
                cases.append(latest[role])
            case "frozen" | "died" | "absent":
                what = SEEN[event.kind]
                if case is None:
                    case = latest[role] = _Case(now, role, what, now)
                    cases.append(case)
                elif what == "killed" and case.what != "killed":
                    case.what += ", then killed"
                case.mark = max(case.mark, now) if case.mark < NEVER else now
            case "joining" | "left":
                if event.kind == "left" and case is not None and case.what == "joined":
                    case.what, case.mark = "could not join", NEVER
                    continue
                what = "joined" if event.kind == "joining" else "left"
                latest[role] = _Case(now, role, what, now)
                cases.append(latest[role])
            case "back" | "thawed" | "joined" if case is not None:
                case.up = now
    away = _away(events)
    return [_told(case, _those_there(ends, away, case), in_rounds) for case in cases]


def _away(events: Iterable[Event]) -> dict[str, list[tuple[float, float]]]:
    """By worker that came later, or left: from when to when it was not there."""
    found: dict[str, list[tuple[float, float]]] = {}
    for event in events:
        if event.kind == "left":
            found.setdefault(event.role, []).append((event.time, NEVER))
        elif event.kind == "joining":
            spans = found.setdefault(event.role, [(0.0, NEVER)])
            spans[-1] = spans[-1][0], event.time
    return found


def _those_there(ends: Ends, away: Mapping[str, list[tuple[float, float]]], case: _Case) -> Ends:
    """Steps of the role itself, and of those who were there with it."""
    return {
        role: steps
        for role, steps in ends.items()
        if role == case.role
        or not any(begin <= case.time < end for begin, end in away.get(role, ()))
    }


def _injected(event: Event, steps: bool) -> _Case:
    case = _Case(event.time, event.role, event.detail, event.time, injected=True)
    try:
        asked = injection(event.detail)
    except SpecError:  # another version's
        return case
    over = NEVER if asked.lasts is None else event.time + asked.lasts
    match asked.kind:
        case "kill":
            case.what = "killed"
        case "stop":
            case.what = "stopped"
            if not steps:  # what was under way between workers and it may still have ended
                case.mark = min(over, event.time + 1.0)
        case "cut" | "mute":
            case.what, case.mark = f"{asked.kind} off from {asked.peer}", over
        case "slow":
            case.what, case.mark = f"{asked.factor:g} times as slow", over
        case "limit":
            case.what = f"limited to {8e-6 * asked.rate:g} Mbit/s"
        case "disk-full":
            case.what, case.mark = "disk full", over
    return case


def _told(case: _Case, ends: Ends, in_rounds: bool) -> Fault:
    own = case.role in ends
    if case.what.endswith("killed") and case.up is None:
        case.mark = NEVER  # whatever was still under way, it did not come back
    if not own and case.up is not None:
        case.mark = max(case.mark, case.up)
    concerned = [case.role] if own and not in_rounds else list(ends)
    if case.what in ("joined", "left"):
        concerned = [role for role in ends if (role == case.role) == (case.what == "joined")]
    found = {role: _after(ends, role, case.mark) for role in concerned}
    if own and found.get(case.role) == NEVER:  # nothing was left to do, or it never came back
        found = {case.role: NEVER if case.up is None else case.up}
    over = max((end for end in found.values() if end < NEVER), default=case.up)
    return Fault(
        time=case.time,
        role=case.role,
        what=case.what,
        injected=case.injected,
        seconds=None if over is None else over - case.time,
    )


def _after(ends: Ends, role: str, mark: float) -> float:
    """When this role's first step after `mark` ended; infinity if there is none."""
    if role not in ends or mark == NEVER:
        return NEVER
    at = int(np.searchsorted(ends[role], mark, side="right"))
    return float(ends[role][at]) if at < len(ends[role]) else NEVER
