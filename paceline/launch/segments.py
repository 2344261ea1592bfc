"""The shared memory of one run: held open here, so that it can be handed to a role again."""

from __future__ import annotations

import os

from paceline.exchange.layout import Layout
from paceline.launch.resolve import check_memory
from paceline.server.shards import Sizes
from paceline.transport import memory
from paceline.transport.board import Board, size_board

SHARED = ("board", "params", "grads", "state", "journal")


class Segments:
    """Made when first asked for, by name; freed by the kernel when the last holder is gone."""

    def __init__(self) -> None:
        self._fds: dict[str, int] = {}
        self._words = 0  # on the board

    def fd(self, name: str) -> int:
        if name not in self._fds:
            self._fds[name] = memory.new_segment(name)
        return self._fds[name]

    def write(self, name: str, content: bytes) -> None:
        os.pwrite(self.fd(name), content, 0)

    def size(self, need: Layout, size: int) -> None:
        """Give a strategy's segments their sizes, for `size` parameters."""
        memory.size_segment(self.fd("params"), need.params * size)
        memory.size_segment(self.fd("grads"), need.grads * size)
        memory.size_segment(self.fd("state"), need.state * size)
        memory.size_segment(self.fd("journal"), need.journal)
        size_board(self.fd("board"), need.board)
        self._words = need.board

    def board(self) -> Board:
        """As workers see it. Let go of it soon: what is mapped is not freed."""
        return Board(self.fd("board"), self._words, 0.0)

    def keep(self, name: str, sizes: Sizes, check: bool) -> dict[str, int]:
        """Where a server keeps what its successor needs; made the first time.

        With `check` it has to be free now. Whoever follows one that is gone takes its room.
        """
        kept, marks = f"kept-{name}", f"marks-{name}"
        if kept not in self._fds:
            floats = 2 * (1 + sizes.states) * sizes.floats
            if check:
                check_memory(floats)
            memory.size_segment(self.fd(kept), floats)
            size_board(self.fd(marks), sizes.words)
        return {"kept": self.fd(kept), "marks": self.fd(marks)}

    def drop(self, name: str) -> None:
        """Nobody will need what was kept under this name."""
        for part in ("kept", "marks"):
            if (fd := self._fds.pop(f"{part}-{name}", None)) is not None:
                os.close(fd)

    def close(self) -> None:
        for fd in self._fds.values():
            os.close(fd)
        self._fds.clear()
