"""The faults of a run as a table."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from paceline.report.layout import Column, table
from paceline.report.words import Summary, many, number


def faults_table(summary: Summary) -> RenderableType | None:
    """One row a fault: what, whose, when, and how long until all was as before.

    Below stands who was started again, and how often.
    """
    faults = summary.get("faults") or ()
    if not faults:
        return None
    what = [f"{fault['what']}{' (injected)' if fault['injected'] else ''}" for fault in faults]
    after = ["never" if f["seconds"] is None else number(f["seconds"], 2) for f in faults]
    shown = table(
        [
            Column(title="fault", cells=what, words=True),
            Column(title="role", cells=[f["role"] for f in faults], words=True, style="cyan"),
            Column(title="at", unit="s", cells=[number(f["time"], 1) for f in faults]),
            Column(title="recovered after", unit="s", cells=after),
        ]
    )
    again = [
        f"{role['role']} {many(role['restarts'], 'time')}"
        for role in summary["roles"]
        if role.get("restarts") and not role.get("inside")
    ]
    return Group(shown, Text(f"started again: {', '.join(again)}")) if again else shown
