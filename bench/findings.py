"""What a bench found that has no contenders to compare: a table, and what was wanted of it.

A whole run is kept beside the others' results and shown on the same page; part of one is printed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.catalog import Bench
from bench.machine import facts
from bench.page import write_page
from bench.told import body
from paceline.store.atomic import write_atomic


@dataclass
class Findings:
    """`head` names the columns of the table, the first of which is words."""

    head: Sequence[str] = ()
    rows: list[Sequence[str]] = field(default_factory=list)
    wanted: list[tuple[str, str, bool]] = field(default_factory=list)

    def want(self, what: str, measured: str, met: bool) -> None:
        self.wanted.append((what, measured, bool(met)))  # numpy has a kind of its own

    def record(self) -> dict[str, Any]:
        return {"head": self.head, "rows": self.rows, "wanted": self.wanted}


def tell(bench: Bench, found: Findings, repeats: int, *, whole: bool) -> None:
    """Print it; of a `whole` run keep it."""
    record = found.record()
    print("\n".join(body(record)))
    if whole:
        record |= {"machine": facts(), "repeats": repeats}
        write_atomic(bench.results, json.dumps(record, indent=1) + "\n")
        write_page()
