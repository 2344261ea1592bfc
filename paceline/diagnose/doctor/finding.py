"""One finding: a warning with its remedy."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What is wrong, and what to do: parts of sentences, without a full stop."""

    kind: str
    sentence: str
    advice: str
