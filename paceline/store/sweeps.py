"""SweepFolder: everything that is kept of one sweep. It lies beside runs, and has its own inside.

    20261118-043012-strong-lenet/
      study.json     the study, its cells, and where it runs; written once
      live.json      the sweep's state and launcher, as they are now
      trials.jsonl   one line a run that ended, with the figures that its study is about
      runs/          those runs, and what is left of any that broke off
      result.json    the sweep's summary, once it has ended

A trial is one repeat of one cell. Whatever has a line in trials.jsonl is done and stays done; what
has none is still to do, so whoever goes on needs nothing else.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paceline.errors import StoreError
from paceline.store.atomic import write_atomic
from paceline.store.lines import LineFile
from paceline.store.live import launcher, live_fault, true_state
from paceline.store.lookup import STUDY, kind_of, locate, run_paths
from paceline.store.making import alone, new_folder
from paceline.store.origin import origin
from paceline.store.text import read_object, to_json

LIVE = "live.json"
RESULT = "result.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One run of a sweep, or why there is none. What is not known is None.

    `seconds` are those that it took in all, which tells how long others will. `figures` are what
    the run measured; `curve` has its scores: seconds and epochs of training, and the values.
    """

    cell: str
    repeat: int
    run: str | None
    seconds: float
    fault: str = ""
    figures: dict[str, float | None] = field(default_factory=dict)
    curve: list[dict[str, float | None]] = field(default_factory=list)


class SweepFolder:
    """One sweep's folder. Whatever fails raises StoreError."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.runs = path / "runs"
        self._trials = LineFile(path / "trials.jsonl")

    @classmethod
    def create(
        cls,
        root: Path,
        label: str,
        study: Mapping[str, Any],
        cells: Sequence[Mapping[str, Any]],
        skipped: Mapping[str, Sequence[str]],
    ) -> SweepFolder:
        """A new folder in `root`, whose launcher is this process."""
        about = {
            **origin(),
            "id": secrets.token_hex(8),
            "study": study,
            "cells": cells,
            "skipped": skipped,
        }

        def fill(path: Path) -> None:
            (path / "runs").mkdir()
            write_atomic(path / STUDY, to_json(about, indent=1))
            cls(path).write_state("running")

        return cls(new_folder(root, label, fill))

    @classmethod
    def find(cls, root: Path, name: str) -> SweepFolder:
        """The sweep a person means by a path, a name, part of a name, or `last`."""
        return cls(locate(root, name, "sweep"))

    @property
    def name(self) -> str:
        return self.path.resolve().name

    def about(self) -> dict[str, Any]:
        """What study.json holds."""
        about = read_object(self.path / STUDY)
        match about:
            case {"study": dict(), "cells": [*cells]} if all(isinstance(c, dict) for c in cells):
                return about
        raise StoreError(f"'{self.path / STUDY}' is damaged: it has no study, or no cells.")

    def alone(self) -> AbstractContextManager[None]:
        """Keep others from going on with it at the same time; RequestError if one does."""
        return alone(self.path)

    def write_state(self, state: str) -> None:
        """`running`, `done` or `stopped`, with this process as the launcher."""
        live = {"state": state, "launcher": launcher(os.getpid()), "roles": []}
        write_atomic(self.path / LIVE, to_json(live, indent=1))

    @property
    def state(self) -> str:
        """`running`, `done`, `stopped`, or `lost` if its launcher died."""
        live = read_object(self.path / LIVE)
        if fault := live_fault(live):
            raise StoreError(f"'{self.path / LIVE}' is damaged: {fault}.")
        return true_state(live)

    def append_trial(self, trial: Trial) -> None:
        self._trials.append([trial])

    def trials(self) -> list[Trial]:
        """All that ended, in the order in which they did; of one that was taken again, the last."""
        found: dict[tuple[str, int], Trial] = {}
        for values in self._trials.read():
            try:
                trial = Trial(**values)
            except TypeError:
                raise StoreError(
                    f"'{self._trials.path}' is damaged: a line has other fields."
                ) from None
            found.pop((trial.cell, trial.repeat), None)
            found[trial.cell, trial.repeat] = trial
        return list(found.values())

    def write_result(self, result: Mapping[str, Any]) -> None:
        write_atomic(self.path / RESULT, to_json(result, indent=1))

    def close(self) -> None:
        self._trials.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepEntry:
    """One sweep in a listing."""

    name: str
    path: Path
    state: str  # or `damaged`
    why: str = ""
    study: str | None = None
    started: str | None = None
    cells: int | None = None
    trials: int | None = None  # to be made in all
    done: int | None = None
    failed: int | None = None


def list_sweeps(root: Path) -> list[SweepEntry]:
    """All sweeps in `root`, newest first. A damaged one hides no other."""
    entries = [sweep_entry(path) for path in run_paths(root) if kind_of(path) == "sweep"]
    return sorted(entries, key=lambda entry: (entry.started or "", entry.name), reverse=True)


def sweep_entry(path: Path) -> SweepEntry:
    """Of the sweep in this folder, whatever state it is in."""
    folder = SweepFolder(path)
    try:
        about, trials, state = folder.about(), folder.trials(), folder.state
    except StoreError as wrong:
        return SweepEntry(name=path.name, path=path, state="damaged", why=str(wrong))
    failed = sum(bool(trial.fault) for trial in trials)
    cells, repeats = len(about["cells"]), about["study"].get("repeats", 1)
    return SweepEntry(
        name=path.name,
        path=path,
        state=state,
        study=about["study"].get("name"),
        started=about.get("started"),
        cells=cells,
        trials=cells * repeats,
        done=len(trials) - failed,
        failed=failed,
    )
