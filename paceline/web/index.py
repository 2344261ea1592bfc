"""What runs and sweeps there are, without reading again what has not changed.

A name in an address is only ever looked up here, never made into a path: what is not in the folder
of runs has no page. A folder that is a link, or has links in it, might lead elsewhere, and has none
either.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path

from paceline.errors import StoreError
from paceline.store.faults import cannot_read
from paceline.store.listing import RunEntry, run_entry
from paceline.store.live import UNDER_WAY
from paceline.store.sweeps import SweepEntry, sweep_entry

Entry = RunEntry | SweepEntry
INSIDE = "runs"  # the folder of a sweep that has its runs


class Index:
    """Of one folder of runs, for all who ask: threads may, at the same time."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._lock = threading.Lock()
        self._known: dict[str, tuple[int, Entry]] = {}

    def entries(self) -> list[Entry]:
        """All of them, newest first. StoreError if the folder cannot be read."""
        with self._lock:
            known, self._known = self._known, {}
            for path, stamp in folders(self.root):
                found = known.get(path.name)
                # All but what grows is replaced whole, which shows in the folder's own time; what
                # is under way is looked at each time, since no file tells that a launcher died.
                if found is None or found[0] != stamp or found[1].state in UNDER_WAY:
                    found = stamp, _entry(path)
                self._known[path.name] = found
            entries = [entry for _, entry in self._known.values()]
        return sorted(entries, key=lambda entry: (entry.started or "", entry.name), reverse=True)

    def find(self, key: str) -> Path | None:
        """The folder of a run or a sweep: `NAME`, or `SWEEP/NAME` for a run of a sweep."""
        sweep, slash, name = key.rpartition("/")
        root = self.find(sweep) if slash else None
        folder = self.root if not slash else root / INSIDE if root is not None else None
        if folder is None or "/" in sweep or folder.is_symlink():
            return None
        try:
            return next((path for path, _ in folders(folder) if path.name == name), None)
        except StoreError:
            return None


def folders(root: Path) -> list[tuple[Path, int]]:
    """Those in `root` that are neither hidden nor links, with names that can be shown; and
    when something in each was added, replaced or removed."""
    try:
        with os.scandir(root) as found:
            return [
                (root / each.name, each.stat(follow_symlinks=False).st_mtime_ns)
                for each in found
                if each.name[0] != "."
                and each.is_dir(follow_symlinks=False)
                and each.name.isprintable()
            ]
    except FileNotFoundError:
        return []
    except OSError as wrong:
        raise cannot_read(root, wrong) from wrong


def links_in(path: Path) -> str | None:
    """The name of a file of the run or sweep that is a link, if any is."""
    for folder in (path, path / "steps"):
        try:
            with os.scandir(folder) as found:
                linked = next((each.name for each in found if each.is_symlink()), None)
        except OSError:
            continue
        if linked:
            return linked
    return None


def _entry(path: Path) -> Entry:
    if linked := links_in(path):
        why = f"'{linked}' in it is a link, which is not followed."
        return RunEntry(name=path.name, path=path, state="damaged", why=why)
    return sweep_entry(path) if (path / "study.json").is_file() else run_entry(path)
