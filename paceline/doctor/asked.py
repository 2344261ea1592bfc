"""What doctor was asked, as every probe gets it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """`spec` are the fields of the run whose threads are measured."""

    folder: str  # that holds the runs, or will
    spec: dict[str, Any] = field(default_factory=lambda: {"task": "lenet"})
    quick: bool = False
    peer: str | None = None
    secret: str = field(default="", repr=False)  # in hexadecimal digits
