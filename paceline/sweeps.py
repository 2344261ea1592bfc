"""Sweeps: every cell of a study, run as often as it says, in its order, through `api.execute`.

One process makes all runs of a sweep, so that one nursery serves them all: a cell costs what its
training takes. What is finished is on disk before the next begins.
"""

from __future__ import annotations

import platform
import statistics
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from paceline import __version__, api
from paceline.errors import Interrupted, RequestError, RunFailed, StoreError
from paceline.report.swept import summarise_sweep
from paceline.report.trials import curve, figures
from paceline.spec import RunSpec
from paceline.store.folder import RunFolder
from paceline.store.lookup import run_paths
from paceline.store.sweeps import SweepFolder, Trial, list_sweeps
from paceline.study.cells import Cell, Plan
from paceline.study.order import blocks
from paceline.study.study import Study, study_of
from paceline.types import Observer


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Where a sweep is as a trial begins: its number among all, and seconds until the end."""

    number: int
    of: int
    cell: str
    repeat: int
    left: float | None


class Watcher(Protocol):
    """Whoever is told of a sweep's trials."""

    def begin(self, standing: Standing) -> Observer:
        """A trial begins; the answer watches its run."""

    def end(self, trial: Trial) -> None:
        """It is over, and recorded."""


def begin(study: Study, plan: Plan, root: Path) -> SweepFolder:
    """A new sweep's folder. Data that no cell could train on is refused before anything runs."""
    for cell in plan.cells:
        api.look_at_data(cell.spec)
    task = plan.cells[0].spec.task.rpartition(":")[2]
    skipped = {name: list(faults) for name, faults in plan.faults.items()}
    return SweepFolder.create(
        root, f"{study.name}-{task}", study.as_object(), _kept(plan.cells), skipped
    )


def unfinished(study: Study, plan: Plan, root: Path) -> SweepFolder | None:
    """The newest sweep in `root` that is the same, was begun here, and is not at its end."""
    for entry in list_sweeps(root):
        if entry.state in ("stopped", "lost", "running"):
            folder = SweepFolder(entry.path)
            about = folder.about()
            same = about["study"] == study.as_object() and about["cells"] == _kept(plan.cells)
            if same and not _elsewhere(about):
                return folder
    return None


def carry_out(folder: SweepFolder, watcher: Watcher, *, again: bool = False) -> bool:
    """Make every trial that is still to do; with `again`, those that failed too.

    Returns whether that is all of them: False if the sweep was stopped before its end.
    """
    about = folder.about()
    if why := _elsewhere(about):
        raise RequestError(f"'{folder.name}' {why}; start a new sweep.")
    study = study_of(about["study"])
    cells = [Cell(**{**cell, "spec": _spec(cell["spec"])}) for cell in about["cells"]]
    with folder.alone():
        folder.write_state("running")
        ended = "stopped"
        try:
            ended = "done" if _all(folder, study, cells, watcher, again) else "stopped"
        except (KeyboardInterrupt, Interrupted):
            pass
        finally:
            folder.close()
            folder.write_state(ended)
            folder.write_result(summarise_sweep(folder))
    return ended == "done"


def _all(
    folder: SweepFolder, study: Study, cells: Sequence[Cell], watcher: Watcher, again: bool
) -> bool:
    made = [trial for trial in folder.trials() if not (again and trial.fault)]
    have = {(trial.repeat, trial.cell) for trial in made}
    order = blocks(len(cells), study.repeats, study.order_seed)
    todo = [(repeat, cells[i]) for repeat, i in order if (repeat, cells[i].name) not in have]
    for done, (repeat, cell) in enumerate(todo):
        standing = Standing(
            number=len(order) - len(todo) + done + 1,
            of=len(order),
            cell=cell.name,
            repeat=repeat,
            left=time_left(made, (left.name for _, left in todo[done:])),
        )
        trial = _try(folder, cell, repeat, watcher.begin(standing))
        if trial is None:
            return False
        folder.append_trial(trial)
        made.append(trial)
        watcher.end(trial)
    return True


def time_left(made: Sequence[Trial], cells: Iterable[str]) -> float | None:
    """As long as these cells took before, or as all did where one has not been run yet."""
    if not made:
        return None
    own: dict[str, list[float]] = {}
    for trial in made:
        own.setdefault(trial.cell, []).append(trial.seconds)
    usual = statistics.fmean(trial.seconds for trial in made)
    return sum(statistics.fmean(own[cell]) if cell in own else usual for cell in cells)


def _try(folder: SweepFolder, cell: Cell, repeat: int, observer: Observer) -> Trial | None:
    """One run of a cell. A failure is a result; None: somebody wants the sweep to stop."""
    before = {path.name for path in run_paths(folder.runs)}
    began = time.monotonic()
    try:
        run = api.execute(cell.repeat(repeat), out=folder.runs, observer=observer)
    except StoreError:
        raise  # the sweep could not be recorded either
    except (RunFailed, RequestError) as wrong:
        new = [path.name for path in run_paths(folder.runs) if path.name not in before]
        return Trial(
            cell=cell.name,
            repeat=repeat,
            run=new[0] if new else None,
            seconds=time.monotonic() - began,
            fault=str(wrong),
        )
    if run.status != "done":
        return None
    kept = RunFolder(Path(run.summary["dir"]))
    return Trial(
        cell=cell.name,
        repeat=repeat,
        run=kept.name,
        seconds=time.monotonic() - began,
        figures=figures(kept, run.summary),
        curve=curve(kept, run.summary),
    )


def _kept(cells: Iterable[Cell]) -> list[dict[str, Any]]:
    """As study.json has them."""
    return [
        {
            "name": cell.name,
            "base": cell.base,
            "fields": dict(cell.fields),
            "spec": cell.spec.absolute().model_dump(),
        }
        for cell in cells
    ]


def _spec(values: Mapping[str, Any]) -> RunSpec:
    return RunSpec(**values)


def _elsewhere(about: Mapping[str, Any]) -> str:
    """Why its figures and new ones would say nothing beside each other, if so."""
    host, version = (about.get("host") or {}).get("name"), about.get("paceline")
    if host != platform.node():
        return f"was begun on host '{host}', and this is '{platform.node()}'"
    if version != __version__:
        return f"was begun with version {version}, and this is {__version__}"
    return ""
