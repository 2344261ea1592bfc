"""The one door to the environment: every variable Paceline reads is read here."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def data_dir() -> Path | None:
    """PACELINE_DATA: where data sets that are not shipped lie."""
    value = os.environ.get("PACELINE_DATA")
    return Path(value) if value else None


def cache_dir() -> Path:
    """PACELINE_CACHE: where decoded and downloaded data is kept between runs."""
    value = os.environ.get("PACELINE_CACHE")
    if value:
        return Path(value)
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base) / "paceline"
    try:
        return Path.home() / ".cache" / "paceline"
    except RuntimeError:  # a container's user that has no home
        return Path(tempfile.gettempdir()) / f"paceline-{os.getuid()}"


def runs_dir() -> Path:
    """PACELINE_RUNS: the folder that holds the runs' folders."""
    return Path(os.environ.get("PACELINE_RUNS", "runs"))


def prices_file() -> Path | None:
    """PACELINE_PRICES: the user's own price book; else the one in their configuration, if any."""
    if value := os.environ.get("PACELINE_PRICES"):
        return Path(value)
    try:
        base = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    except RuntimeError:
        return None
    own = base / "paceline" / "prices.toml"
    return own if own.is_file() else None


def secret() -> str | None:
    """PACELINE_SECRET: what both ends of `paceline doctor --peer` know, and nobody else."""
    return os.environ.get("PACELINE_SECRET") or None


def for_roles() -> dict[str, str]:
    """The environment of roles: this one, with malloc set for large models (launch/malloc.py)."""
    return {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0:glibc.malloc.hugetlb=1", **os.environ}
