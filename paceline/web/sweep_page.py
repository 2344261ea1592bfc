"""One sweep: its answer so far, its cells, and the runs that were made for it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from paceline.errors import StoreError
from paceline.report.sweep_tables import cell_columns, failures, notes
from paceline.report.swept import summarise_sweep
from paceline.store.live import UNDER_WAY
from paceline.store.sweeps import SweepFolder
from paceline.web.drawn import of_sweep
from paceline.web.index import INSIDE, Index, links_in
from paceline.web.list_page import ListPage
from paceline.web.pace import Pace
from paceline.web.pages import part
from paceline.web.run_page import drawn
from paceline.web.topic import Content


class SweepPage:
    """Parts: state, answer, cells, charts, `figure:NAME`, and `run:NAME` of each run."""

    def __init__(self, path: Path, key: str) -> None:
        self._folder = SweepFolder(path)
        self._key = key
        self._runs = ListPage(Index(path / INSIDE), within=key)
        self._pace = Pace()
        self._parts: dict[str, Content] = {}
        self._last: object = None

    def __call__(self) -> Mapping[str, Content]:
        folder = self._folder
        if linked := links_in(folder.path):
            raise StoreError(f"'{linked}' in it is a link, which is not followed.")
        state, trials = folder.state, folder.path / "trials.jsonl"
        stamp = state, trials.stat().st_size if trials.is_file() else 0
        if stamp != self._last and (self._pace.due or state not in UNDER_WAY):
            with self._pace.taken():
                self._parts = self._whole(state)
            self._last = stamp
        return {**self._parts, **self._runs()}

    def _whole(self, state: str) -> dict[str, Content]:
        summary = summarise_sweep(self._folder)
        return {
            "state": part("sweep_state", self._key, state, summary["trials"], state in UNDER_WAY),
            "answer": part("said", summary["answer"]),
            "cells": part("cells", cell_columns(summary), notes(summary), failures(summary)),
            **drawn(of_sweep(summary)),
        }
