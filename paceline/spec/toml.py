"""A spec from a TOML file, and as one: its keys are the spec's fields."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
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


def write_toml(values: Mapping[str, Any]) -> str:
    """Lines that `tomllib` reads back as these values; tables come last. What is None is left out.

    A mapping in a list is an inline table.
    """
    known = {key: value for key, value in values.items() if value is not None}
    lines = [f"{_key(k)} = {_value(v)}" for k, v in known.items() if not isinstance(v, Mapping)]
    for key, table in known.items():
        if isinstance(table, Mapping) and table:
            lines += ["", f"[{_key(key)}]"]
            lines += [f"{_key(k)} = {_value(v)}" for k, v in table.items() if v is not None]
    return "\n".join(lines).strip() + "\n"


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _value(key)


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, float) and not isinstance(value, bool):
        return repr(value)
    # JSON's strings are TOML's, but for a control character that JSON lets stand.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
