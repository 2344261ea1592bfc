"""One run: how it is doing, what holds it back, and all its charts and tables.

What the ends of files tell is told at once; what takes all of them comes at a pace of its own.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from paceline.diagnose.records import read
from paceline.errors import StoreError
from paceline.report.charts.chart import Chart
from paceline.report.hosts import host_columns
from paceline.report.summary import summarise
from paceline.report.tables import event_line, header, role_columns
from paceline.store.folder import RunFolder
from paceline.store.live import UNDER_WAY
from paceline.types import record
from paceline.web.drawn import of_run
from paceline.web.index import links_in
from paceline.web.now import Now, now
from paceline.web.pace import Pace
from paceline.web.pages import part
from paceline.web.topic import Content

SOON = ("state", "events")
EVENTS = 200  # the newest; a page of thousands helps nobody


class RunPage:
    """Parts: state, answer, figures, events, roles, charts, spec, and `figure:NAME`."""

    def __init__(self, path: Path, key: str) -> None:
        self._folder = RunFolder(path)
        self._key = key
        self._pace = Pace()
        self._stamp: object = None
        self._parts: dict[str, Content] = {}
        self._last: object = None  # the stamp of what the slow parts were made from

    def __call__(self) -> Mapping[str, Content]:
        """StoreError if it cannot be read at all, or is gone."""
        folder = self._folder
        folder.check()
        if linked := links_in(folder.path):
            raise StoreError(f"'{linked}' in it is a link, which is not followed.")
        state = folder.state
        stamp = state, _stamp(folder.path)
        if stamp != self._stamp:
            self._stamp = stamp
            self._parts |= self._soon(state)
        if self._last != stamp and (self._pace.due or state not in UNDER_WAY):
            with self._pace.taken():
                whole = self._whole(state)
            self._parts = {name: self._parts[name] for name in SOON} | whole
            self._last = stamp
        return self._parts

    def _soon(self, state: str) -> dict[str, Content]:
        under_way = state in UNDER_WAY
        doing = now(self._folder) if under_way else Now()
        events = [event_line(record(event)) for event in self._folder.events()[-EVENTS:]]
        return {
            "state": part("run_state", self._key, state, doing, under_way),
            "events": part("events", events[::-1]),
        }

    def _whole(self, state: str) -> dict[str, Content]:
        records = read(self._folder)
        summary = summarise(self._folder, records)
        return {
            "asked": part("asked", header(summary).plain),
            "answer": part("answer", summary["verdict"], state in UNDER_WAY),
            "figures": part("figures", summary),
            "roles": part("roles", role_columns(summary), host_columns(summary), summary["roles"]),
            "spec": part("spec", summary["spec"], summary["dir"]),
            **drawn(of_run(records, summary)),
        }


def drawn(charts: list[Chart]) -> dict[str, Content]:
    """The places of charts, with their words and numbers, and what is drawn there."""
    figures: dict[str, Content] = {f"figure:{chart.name}": dict(chart.views) for chart in charts}
    return {"charts": part("charts", charts), **figures}


def _stamp(path: Path) -> tuple[Any, ...]:
    """By which any change of the run shows."""
    found = []
    for folder in (path, path / "steps"):
        try:
            with os.scandir(folder) as entries:
                for each in entries:
                    of = each.stat(follow_symlinks=False)
                    found.append((each.name, of.st_mtime_ns, of.st_size))
        except OSError:
            continue
    return tuple(sorted(found))
