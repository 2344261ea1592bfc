"""Work that was done before and need not be done again."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

from paceline import __version__
from paceline.spec import RunSpec
from paceline.store import listing
from paceline.store.folder import RunFolder


def finished_run(root: Path, spec: RunSpec) -> dict[str, Any] | None:
    """The result of the newest run in `root` that did just this, here, to its end; if there is one.

    Another version may fill what a spec leaves open in another way, so its runs do not count.
    """
    asked = spec.absolute().model_dump()
    for entry in listing.list_runs(root):
        if entry.state != "done" or entry.seconds is None:
            continue
        folder = RunFolder(entry.path)
        about = folder.read_spec()
        here = (about.get("host") or {}).get("name") == platform.node()
        if here and about["spec"] == asked and about.get("paceline") == __version__:
            return folder.read_result()
    return None
