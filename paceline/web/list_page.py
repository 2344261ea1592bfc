"""All runs and sweeps, a row each."""

from __future__ import annotations

from collections.abc import Mapping

from markupsafe import Markup

from paceline.errors import StoreError
from paceline.store.folder import RunFolder
from paceline.store.listing import RunEntry
from paceline.store.live import UNDER_WAY
from paceline.web.index import Entry, Index
from paceline.web.now import Now, now
from paceline.web.pages import part
from paceline.web.topic import Content


class ListPage:
    """Parts: `run:NAME` and `sweep:NAME`, and how many there are."""

    def __init__(self, index: Index, within: str = "") -> None:
        """`within` is the sweep whose runs these are."""
        self._index = index
        self._prefix = f"{within}/" if within else ""
        self._rows: dict[str, tuple[Entry, Now, Markup]] = {}

    def __call__(self) -> Mapping[str, Content]:
        entries = self._index.entries()
        before, self._rows = self._rows, {}
        for entry in entries:
            doing = _now(entry)
            row = before.get(entry.name)
            if row is None or row[:2] != (entry, doing):
                kind = "run_row" if isinstance(entry, RunEntry) else "sweep_row"
                row = entry, doing, part(kind, entry, doing, self._prefix + entry.name)
            self._rows[entry.name] = row
        rows = {f"{_kind(entry)}:{name}": row for name, (entry, _, row) in self._rows.items()}
        return {"counted": part("counted", entries, UNDER_WAY), **rows}


def _kind(entry: Entry) -> str:
    return "run" if isinstance(entry, RunEntry) else "sweep"


def _now(entry: Entry) -> Now:
    if not isinstance(entry, RunEntry) or entry.state not in UNDER_WAY:
        return Now()
    try:
        return now(RunFolder(entry.path))
    except StoreError:
        return Now()
