"""Where the members of a process group find one another: what each says goes to all the others.

It travels through the supervisor, which is there whoever dies. Torch has stores for this, but its
own over TCP asks the name service for every address it meets, and waits for the answer: where that
is slow a group took seconds to form, and where it was mute a run stood still.
"""

from __future__ import annotations

import time
from datetime import timedelta

from torch._C._distributed_c10d import Store

from paceline.errors import PeerLost
from paceline.exchange.base import Groups

LOOK = 0.002  # seconds between looks at what is there


class Directory(Store):
    """Of one generation. Whoever waits for a word longer than `seconds`, or for one that cannot
    come any more, gets PeerLost."""

    def __init__(self, groups: Groups, generation: int, seconds: float) -> None:
        super().__init__()
        self._groups = groups
        self._generation = generation
        self._seconds = seconds

    def set(self, key: str, value: bytes) -> None:  # type: ignore[override]  # as torch calls it
        self._groups.put(self._generation, key, value)

    def get(self, key: str) -> bytes:
        self.wait([key])
        found = self._groups.got(self._generation, key)
        assert found is not None
        return found

    def check(self, keys: list[str]) -> bool:
        return all(self._groups.got(self._generation, key) is not None for key in keys)

    def wait(self, keys: list[str], timeout: timedelta | None = None) -> None:
        over = time.monotonic() + (timeout.total_seconds() if timeout else self._seconds)
        while not self.check(keys):
            if self._groups.broken(self._generation) or time.monotonic() > over:
                raise PeerLost("not all have come to the all-reduce.")
            time.sleep(LOOK)
