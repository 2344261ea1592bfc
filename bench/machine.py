"""Facts of the machine a bench ran on, so that its numbers can be read."""

from __future__ import annotations

from datetime import date
from typing import Any

from paceline.store.origin import origin


def facts() -> dict[str, Any]:
    about = origin()
    host = {k: v for k, v in about["host"].items() if k != "name"}
    return {"date": date.today().isoformat(), "host": host, "versions": about["versions"]}


def sentence(machine: dict[str, Any]) -> str:
    host, versions = machine["host"], machine["versions"]
    told = ", ".join(f"{name} {version}" for name, version in versions.items() if version)
    memory = host["memory_bytes"] / 2**30
    return f"{machine['date']}: {host['cores']} cores of {host['cpu']}, {memory:.0f} GiB; {told}."
