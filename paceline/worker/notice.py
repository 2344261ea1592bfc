"""A notice to one worker alone: somebody wants its place back, and asks it to end with SIGTERM.

It is only taken down here. The worker tells the supervisor between two steps, and goes when it is
told to: the others learn of it in time, and nothing that it has done is lost.
"""

from __future__ import annotations

import signal


class Notice:
    """Caught from now on, for as long as the process is a worker."""

    def __init__(self) -> None:
        self._given = False
        signal.signal(signal.SIGTERM, self._note)

    def _note(self, *_: object) -> None:
        self._given = True

    def taken(self) -> bool:
        """Whether there was one since this was last asked."""
        given, self._given = self._given, False
        return given
