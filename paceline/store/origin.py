"""Where a run comes from: what one needs, beside its spec, to repeat it or to doubt it."""

from __future__ import annotations

import platform
import subprocess
import sys
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from paceline import __version__
from paceline.measure.cores import granted_cores, my_cores
from paceline.measure.process import total_memory

GIT_SECONDS = 2.0


def origin() -> dict[str, Any]:
    """Versions, host, commit, command and time, as spec.json holds them."""
    return {
        "paceline": __version__,
        "versions": {
            "python": platform.python_version(),
            "torch": _version("torch"),
            "numpy": _version("numpy"),
        },
        "host": {
            "name": platform.node(),
            "cores": granted_cores(),
            "usable": sorted(my_cores()),
            "cpu": _cpu_model(),
            "memory_bytes": total_memory(),
            "os": platform.platform(),
        },
        "commit": _commit(),
        "command": sys.argv,
        "started": datetime.now(UTC).isoformat(timespec="microseconds"),
    }


def _version(package: str) -> str | None:
    """From the package's metadata: importing torch for its version alone would take seconds."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _cpu_model() -> str:
    try:
        with Path("/proc/cpuinfo").open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _commit() -> str | None:
    """The commit checked out in the current directory, if that is a git project."""
    try:
        answer = subprocess.run(
            ["git", "rev-parse", "--verify", "HEAD"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=GIT_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None
    return answer.stdout.strip() or None
