"""JSON as any reader accepts it: NaN and infinities become null."""

from __future__ import annotations

import json
import math
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
    return json.dumps(finite(value), allow_nan=False, ensure_ascii=False, indent=indent) + "\n"


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
