"""The shared memory of one run: held open here, so that it can be handed to a role again."""

from __future__ import annotations

import os
from collections.abc import Sequence

from paceline.exchange.layout import Layout
from paceline.exchange.stripes import TableLayout
from paceline.launch.resolve import check_memory
from paceline.server.shards import Sizes
from paceline.server.striping import Size, undo_words
from paceline.transport import memory
from paceline.transport.board import Board, size_board

SHARED = ("board", "params", "grads", "state", "journal")
TABLES = ("tables", "table-journal", "table-pushes", "table-board")


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
        row = memory.padded(size)
        memory.size_segment(self.fd("params"), need.params * row)
        memory.size_segment(self.fd("grads"), need.grads * row)
        memory.size_segment(self.fd("state"), need.state * row)
        memory.size_segment(self.fd("journal"), need.journal)
        size_board(self.fd("board"), need.board)
        self._words = need.board

    def size_tables(self, need: TableLayout, room: int) -> None:
        """The same for sparse tables, for so many workers."""
        memory.size_segment(self.fd("tables"), need.held)
        memory.size_segment(self.fd("table-journal"), need.journal)
        memory.size_segment(self.fd("table-pushes"), need.pushed * room)
        size_board(self.fd("table-board"), max(1, need.board))

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

    def keep_rows(self, name: str, sizes: Sequence[Size], states: int) -> dict[str, int]:
        """The same for what a server has of sparse tables."""
        rows, notes, board = f"rows-{name}", f"notes-{name}", f"flags-{name}"
        if rows not in self._fds:
            memory.size_segment(self.fd(rows), sum(size.held(states) for size in sizes))
            memory.size_segment(self.fd(notes), sum(size.journal(states, 1) for size in sizes))
            size_board(self.fd(board), undo_words(len(sizes)))
        return {"rows": self.fd(rows), "notes": self.fd(notes), "flags": self.fd(board)}

    def drop(self, name: str) -> None:
        """Nobody will need what was kept under this name."""
        for part in ("kept", "marks", "rows", "notes", "flags"):
            if (fd := self._fds.pop(f"{part}-{name}", None)) is not None:
                os.close(fd)

    def close(self) -> None:
        for fd in self._fds.values():
            os.close(fd)
        self._fds.clear()
