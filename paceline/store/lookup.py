"""Finding the folder of a run or a sweep by what a person types."""

from __future__ import annotations

import difflib
from pathlib import Path

from paceline.errors import RequestError, StoreError
from paceline.store.faults import cannot_read
from paceline.store.text import read_object

SPEC = "spec.json"
STUDY = "study.json"
MARKS = {"run": SPEC, "sweep": STUDY}  # the file that makes a folder one
LAST = "last"
SHOWN = 5


def run_paths(root: Path) -> list[Path]:
    """Every folder under `root` that is not hidden; runs being made are hidden."""
    try:
        return [path for path in root.iterdir() if path.name[0] != "." and path.is_dir()]
    except FileNotFoundError:
        return []
    except OSError as wrong:
        raise cannot_read(root, wrong) from wrong


def locate(root: Path, name: str, *kinds: str) -> Path:
    """The folder meant by a path, a name, a part of a name that only one has, or `last`.

    `kinds` says what it may be: a `run`, a `sweep`, or either; a run where nothing is said.
    """
    kinds = kinds or ("run",)
    what = " or ".join(kinds)
    paths = {path.name: path for path in run_paths(root) if kind_of(path) in kinds}
    if name in paths:
        return paths[name]
    if name == LAST and paths:
        return max(paths.values(), key=_started)
    if kind_of(Path(name)) in kinds:
        return Path(name)
    if "sweep" not in kinds and (sweep := _sweep(root, name)) is not None:
        raise RequestError(
            f"'{sweep.name}' is a sweep, not a run: paceline sweep --resume {sweep.name} goes on "
            f"with it, and its runs are in '{sweep / 'runs'}'."
        )
    if len(Path(name).parts) > 1:
        marks = " or ".join(MARKS[kind] for kind in kinds)
        raise RequestError(f"'{name}' is not a {what}'s folder: it has no {marks}.")
    if not paths:
        raise RequestError(
            f"there is no {what} in '{root}' yet; start one with paceline {kinds[0]}."
        )
    matches = [known for known in sorted(paths) if known.startswith(name)]
    matches = matches or [known for known in sorted(paths) if name and name in known]
    if len(matches) == 1:
        return paths[matches[0]]
    if matches:
        raise RequestError(
            f"'{name}' fits {len(matches)} {what}s in '{root}'; say which: {_some(matches)}."
        )
    close = difflib.get_close_matches(name, paths, n=SHOWN, cutoff=0.4)
    hint = f"close to it: {_some(close)}" if close else f"'{LAST}' is the newest {what}"
    raise RequestError(f"there is no {what} '{name}' in '{root}'; {hint}.")


def kind_of(path: Path) -> str | None:
    """`run`, `sweep`, or neither."""
    return next((kind for kind, mark in MARKS.items() if (path / mark).is_file()), None)


def _sweep(root: Path, name: str) -> Path | None:
    """That somebody means who asks for a run."""
    return next((at for at in (root / name, Path(name)) if kind_of(at) == "sweep"), None)


def _started(path: Path) -> str:
    """Times are all UTC in one format, so they sort as text."""
    try:
        return str(read_object(path / MARKS[kind_of(path) or "run"]).get("started", ""))
    except StoreError:
        return ""


def _some(names: list[str]) -> str:
    more = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {more} more" if more > 0 else "")
