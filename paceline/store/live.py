"""Whether a run is really in the state that its folder says."""

from __future__ import annotations

import platform
from typing import Any

from paceline.measure.process import Process, still_runs

STATES = ("starting", "running", "done", "failed", "stopped")
UNDER_WAY = ("starting", "running")


def launcher(pid: int) -> dict[str, Any]:
    """What tells this launcher from any other process, now or later: a pid alone is reused."""
    try:
        created = Process(pid).created
    except ProcessLookupError:
        created = 0.0
    return {"pid": pid, "created": created, "host": platform.node()}


def live_fault(live: dict[str, Any]) -> str | None:
    """What is wrong with the content of a roles.json."""
    match live:
        case {"state": state} if state not in STATES:
            return f"'{state}' is no state of a run"
        case {
            "state": str(),
            "launcher": {"pid": int(), "created": float(), "host": str()},
            "roles": [*roles],
        } if all(isinstance(role, dict) and isinstance(role.get("role"), str) for role in roles):
            return None
    return "it lacks a state, a launcher or roles"


def true_state(live: dict[str, Any]) -> str:
    """The state in roles.json, or `lost` if it says under way and its launcher is dead.

    A launcher on another host cannot be looked at from here and is taken at its word.
    """
    state: str = live["state"]
    found = live["launcher"]
    if state not in UNDER_WAY or found["host"] != platform.node():
        return state
    return state if still_runs(found["pid"], found["created"]) else "lost"
