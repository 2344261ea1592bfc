"""JSON as any reader accepts it: NaN and infinities become null."""

from __future__ import annotations

import json
import math
from functools import partial
from pathlib import Path
from typing import Any

from paceline.errors import StoreError
from paceline.store.faults import cannot_read


def finite(value: Any) -> Any:
    """The same value with every number that JSON cannot say replaced by None."""
    match value:
        case float():
            return value if math.isfinite(value) else None
        case dict():
            return {key: finite(each) for key, each in value.items()}
        case list() | tuple():
            return [finite(each) for each in value]
    return value


def to_json(value: Any, indent: int | None = None) -> str:
    say = partial(json.dumps, allow_nan=False, ensure_ascii=False, indent=indent)
    try:
        return say(value) + "\n"
    except ValueError:  # rare, and looking for it takes longer than saying it
        return say(finite(value)) + "\n"


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file, or StoreError saying what is wrong with it."""
    try:
        value = json.loads(path.read_bytes())
    except OSError as wrong:
        raise cannot_read(path, wrong) from wrong
    except ValueError:  # not JSON, or not UTF-8
        raise StoreError(f"'{path}' is damaged: it is not valid JSON.") from None
    if not isinstance(value, dict):
        raise StoreError(f"'{path}' is damaged: it does not hold a JSON object.")
    return value
