"""Writing a role's part of a checkpoint beside what the role does."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from paceline.errors import PacelineError
from paceline.store.parts import Arrays, write_part
from paceline.transport.control import Control, Message

WRITING_SECONDS = 120.0  # a disk that takes longer is given up on
LEAST_URGENT = 19  # training goes first: Linux has a niceness for each thread


class PartWriter:
    """Writes in a thread, one part at a time, and tells the supervisor what came of it."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self._writing: threading.Thread | None = None

    def write(
        self, asked: Message, values: Mapping[str, Any], arrays: Arrays, how_far: dict[str, int]
    ) -> None:
        """`asked` is the supervisor's wish; `how_far` goes to the manifest."""
        self.close()
        number, path = asked["number"], Path(asked["path"])

        def write() -> None:
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), LEAST_URGENT)
            try:
                seal = write_part(path, values, arrays)
            except PacelineError as wrong:
                self.refuse(asked, str(wrong))
            except Exception as wrong:  # noqa: BLE001 - no memory, a bug: it is told, and goes on
                self.refuse(asked, f"{type(wrong).__name__}: {wrong}")
            else:
                self._control.send("kept", number=number, **how_far, **asdict(seal))

        self._writing = threading.Thread(target=write, name="paceline-keep", daemon=True)
        self._writing.start()

    def refuse(self, asked: Message, why: str) -> None:
        """There will be no part."""
        self._control.send("unkept", number=asked["number"], why=why)

    def close(self) -> bool:
        """Wait for what is being written, as long as a disk may take: whether it is done."""
        if self._writing is not None:
            self._writing.join(WRITING_SECONDS)
        return self._writing is None or not self._writing.is_alive()
