"""Facts of the machine a bench ran on, so that its numbers can be read."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from paceline.store.origin import origin


def facts(others: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Date, host and versions; `others` are versions of packages that Paceline does not use."""
    about = origin()
    host = {k: v for k, v in about["host"].items() if k != "name"}
    versions = {**about["versions"], **(others or {})}
    return {"date": date.today().isoformat(), "host": host, "versions": versions}


def sentence(machine: dict[str, Any]) -> str:
    host, versions = machine["host"], machine["versions"]
    told = ", ".join(f"{name} {version}" for name, version in versions.items() if version)
    memory = host["memory_bytes"] / 2**30
    return f"{machine['date']}: {host['cores']} cores of {host['cpu']}, {memory:.0f} GiB; {told}."
