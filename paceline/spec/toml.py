"""A spec from a TOML file: its keys are the spec's fields."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from paceline.errors import RequestError


def read_toml(path: Path) -> dict[str, Any]:
    """The file's fields; `[run]` may hold them, or the top level."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as wrong:
        raise RequestError(f"cannot read spec file '{path}': {_why(wrong)}.") from None
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as wrong:
        raise RequestError(f"'{path}' is not valid TOML: {wrong}.") from None
    run = values.get("run", values)
    if not isinstance(run, dict):
        raise RequestError(f"'{path}': 'run' must be a table of spec fields.")
    return {key.replace("-", "_"): value for key, value in run.items()}


def _why(wrong: OSError | UnicodeDecodeError) -> str:
    if isinstance(wrong, OSError):
        return (wrong.strerror or str(wrong)).lower()
    return "it is not UTF-8 text"
