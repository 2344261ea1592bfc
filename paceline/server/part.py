"""A server's part of a checkpoint: every block as it stood between two of its updates.

    wish ─► in rounds: each block right after the round in which all workers ask for it
            else:      one block after another, between two turns of the server's loop

In rounds all blocks are of the same one. Otherwise they need not be of one moment: each comes with
the names of the pushes that are in it, and what it lacks is pushed again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from paceline.errors import TaskError
from paceline.server.note import Note
from paceline.server.window import Window

Arrays = dict[str, npt.NDArray[Any]]


class Copying:
    """Copies for one wish, in memory of its own."""

    def __init__(self, windows: Sequence[Window], workers: int) -> None:
        self._windows = windows
        self._workers = workers
        sizes = [window.table.size for window in windows]
        ends = np.cumsum(sizes).tolist()
        self._spans = [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]
        self._params = torch.empty(ends[-1])
        self._state = torch.empty(windows[0].table.held[1].shape[0], ends[-1])
        self._versions = np.zeros(len(windows), np.int64)
        self._pushes = np.zeros((len(windows), workers), np.int64)
        self._shares = np.zeros((len(windows), workers, 2), np.int64)
        self._rows: Arrays = {}
        self.failed = ""  # why it will never be whole
        for window in windows:
            window.wish(self._copy)

    def _copy(self, window: Window) -> None:
        index, span, everyone = window.index, self._spans[window.index], range(self._workers)
        params, state = window.table.held
        self._params[span].copy_(params)
        self._state[:, span].copy_(state)
        if window.tables is not None:
            try:
                self._rows = window.tables.keep()
            except MemoryError as wrong:
                self.failed = f"no copy could be made: {wrong}"
        self._versions[index] = window.table.version
        self._pushes[index] = [window.known_of(worker) for worker in everyone]
        self._shares[index] = [window.gate.share(worker) for worker in everyone]

    def turn(self) -> bool:
        """One block more, where there are no rounds to wait for: whether there is more to do."""
        left = [w for w in self._windows if w.ready and not w.copied and not w.gate.holds]
        for window in left[:1]:
            window.copy()
        return len(left) > 1

    def finish(self) -> None:
        """All that is left, as it stands: nobody pushes any more."""
        for window in self._windows:
            window.copy()

    @property
    def whole(self) -> bool:
        return all(window.copied for window in self._windows)

    @property
    def agree(self) -> bool:
        """Whether blocks that go in rounds are of the same one."""
        return not self._windows[0].gate.holds or len(set(self._versions.tolist())) == 1

    @property
    def version(self) -> int:
        return int(self._versions.max())

    def arrays(self) -> Arrays:
        """What is to be written, once it is whole."""
        return {
            "parameters": self._params.numpy(),
            "state": self._state.numpy(),
            "versions": self._versions,
            "pushes": self._pushes,
            "shares": self._shares,
            **self._rows,
        }


def restore(windows: Sequence[Window], kept: Mapping[str, npt.NDArray[Any]]) -> None:
    """Have these blocks be what was kept of them."""
    size = sum(window.table.size for window in windows)
    if kept["parameters"].size != size or len(kept["versions"]) != len(windows):
        raise TaskError(
            f"the checkpoint has {kept['parameters'].size:,} parameters of this server's and the "
            f"model {size:,}: the task has changed since."
        )
    if (tables := windows[0].tables) is not None:  # before anything stands
        tables.restore(kept)
    params, state = torch.from_numpy(kept["parameters"]), torch.from_numpy(kept["state"])
    begin = 0
    for window, version, pushes, shares in zip(
        windows, kept["versions"], kept["pushes"], kept["shares"], strict=True
    ):
        span = slice(begin, begin + window.table.size)
        begin = span.stop
        note = Note(
            {worker: int(push) for worker, push in enumerate(pushes) if push},
            {worker: (int(a), int(b)) for worker, (a, b) in enumerate(shares) if a < b},
        )
        window.restore(int(version), params[span], state[:, span], note)
