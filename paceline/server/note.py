"""What belongs to a version of a block besides its numbers: whose pushes are in it, who has which
share of the next round. It goes with every update to a standby."""

from __future__ import annotations

import struct
from typing import NamedTuple

from paceline.server.gate import Shares

_WORKER = struct.Struct("<QII")


class Note(NamedTuple):
    """The last push of each worker's that is in a version, and the shares told with it."""

    pushes: dict[int, int]
    shares: Shares

    def pack(self, workers: int, room: int = 0) -> bytes:
        """As many bytes for each there is room for, so that both ends know how long it is."""
        none = (0, 0)
        told = [
            _WORKER.pack(self.pushes.get(w, 0), *self.shares.get(w, none)) for w in range(workers)
        ]
        return b"".join(told).ljust(note_bytes(max(room, workers)), b"\0")

    @classmethod
    def unpack(cls, data: bytes | memoryview) -> Note:
        rows = list(enumerate(_WORKER.iter_unpack(data)))
        return cls(
            {w: sequence for w, (sequence, _, _) in rows if sequence},
            {w: (begin, end) for w, (_, begin, end) in rows if begin < end},
        )


def note_bytes(workers: int) -> int:
    return workers * _WORKER.size
