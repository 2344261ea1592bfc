"""Finding one run's folder by what a person types."""

from __future__ import annotations

import difflib
from pathlib import Path

from paceline.errors import RequestError, StoreError
from paceline.store.faults import cannot_read
from paceline.store.text import read_object

SPEC = "spec.json"
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


def locate(root: Path, name: str) -> Path:
    """The folder meant by a path, a name, a part of a name that only one run has, or `last`."""
    paths = {path.name: path for path in run_paths(root) if (path / SPEC).is_file()}
    if name in paths:
        return paths[name]
    if name == LAST and paths:
        return max(paths.values(), key=_started)
    if (Path(name) / SPEC).is_file():
        return Path(name)
    if len(Path(name).parts) > 1:
        raise RequestError(f"'{name}' is not a run's folder: it has no {SPEC}.")
    if not paths:
        raise RequestError(f"there is no run in '{root}' yet; start one with paceline run.")
    matches = [known for known in sorted(paths) if known.startswith(name)]
    matches = matches or [known for known in sorted(paths) if name and name in known]
    if len(matches) == 1:
        return paths[matches[0]]
    if matches:
        raise RequestError(
            f"'{name}' fits {len(matches)} runs in '{root}'; say which: {_some(matches)}."
        )
    close = difflib.get_close_matches(name, paths, n=SHOWN, cutoff=0.4)
    hint = f"close to it: {_some(close)}" if close else f"'{LAST}' is the newest run"
    raise RequestError(f"there is no run '{name}' in '{root}'; {hint}.")


def _started(path: Path) -> str:
    """Times in spec.json are all UTC in one format, so they sort as text."""
    try:
        return str(read_object(path / SPEC).get("started", ""))
    except StoreError:
        return ""


def _some(names: list[str]) -> str:
    more = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {more} more" if more > 0 else "")
