"""A server's side of checkpoints: hear the wish, have the desk copy, write, tell.

keep ─► keeping: it is ready for it ─► copied, block by block ─► kept
"""

from __future__ import annotations

from pathlib import Path

from paceline.server.desk import Desk
from paceline.server.part import Copying, restore
from paceline.store.parts import Seal, read_part
from paceline.transport.control import Control, Message
from paceline.worker.writing import PartWriter


class ServerKeeper:
    """Looked after a few times a second, by the server's own thread."""

    def __init__(self, control: Control, desk: Desk) -> None:
        self._control = control
        self._desk = desk
        self._writer = PartWriter(control)
        self._wish: Message | None = None
        self._copied = 0  # the number of the last that was copied whole

    def turn(self) -> None:
        """Have what is copied whole written."""
        copying = self._desk.copying
        if self._wish is not None and copying is not None and copying.whole:
            self._write(self._wish, copying)

    def hear(self, wish: Message) -> None:
        """A checkpoint is wished for; or once more, at the end of a run."""
        self.turn()  # first: it may be copied already
        if wish["number"] == self._copied:
            return
        self._wish = wish
        try:
            copying = self._desk.keep()
        except (MemoryError, RuntimeError) as wrong:  # torch's word for no memory is the latter
            self._writer.refuse(wish, f"no copy could be made: {wrong}")
            self._wish = None
            return
        if wish["last"]:
            copying.finish()
        self._control.send("keeping", number=wish["number"])

    def _write(self, wish: Message, copying: Copying) -> None:
        self._wish, self._desk.copying, self._copied = None, None, wish["number"]
        if not copying.agree:
            self._writer.refuse(wish, "its blocks are of different rounds")
            return
        if copying.failed:
            self._writer.refuse(wish, copying.failed)
            return
        how_far = {"step": copying.version, "epoch": 0, "round": copying.version}
        self._writer.write(wish, {}, copying.arrays(), how_far)

    def close(self) -> None:
        """Wait for what is being written."""
        self._writer.close()


def take_up(desk: Desk, kept: Message) -> None:
    """Serve what was kept, from where it was kept."""
    _, arrays = read_part(Path(kept["path"]), Seal(bytes=kept["bytes"], digest=kept["digest"]))
    restore(desk.windows, arrays)
