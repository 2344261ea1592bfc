"""A word for each worker where they exchange without rounds, and room for those who may still come.

Words on the board alone: no torch here, the supervisor seats those who come.
"""

from __future__ import annotations

from paceline.transport.board import GONE, Board


class Seats:
    """On the board it has from `first` on: how many have come to the `workers` of the start; then a
    word a worker. Nobody looks at empty seats."""

    def __init__(
        self, board: Board, first: int, workers: int, room: int = 0, awaited: bool = True
    ) -> None:
        """Where others are `awaited`, whoever is not there is GONE."""
        self._board = board
        self._nobody = GONE if awaited else 0
        self._workers = workers
        self._more = first
        self._all = range(first + 1, first + self.words(max(room, workers)))
        self._come = -1
        self._there = self._all[:0]

    @staticmethod
    def words(room: int) -> int:
        """How many of the board it takes."""
        return 1 + room

    @property
    def stop(self) -> int:
        """The first word after these."""
        return self._all.stop

    def __getitem__(self, worker: int) -> int:
        return self._all[worker]

    def there(self) -> range:
        """The words of all who have come so far."""
        come = self._board.words[self._more]
        if come != self._come:
            self._come, self._there = come, self._all[: self._workers + come]
        return self._there

    def seat(self, worker: int) -> None:
        """There is such a worker from now on; where others are awaited, it is not yet."""
        come = worker + 1 - self._workers
        if come > self._board.words[self._more]:
            self.leave(worker)
            self._board.post(self._more, come)

    def leave(self, worker: int) -> None:
        """Nobody waits for this worker."""
        self._board.words[self._all[worker]] = self._nobody
