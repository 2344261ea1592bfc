"""Who takes part in rounds that close with the first N − k gradients, over shared memory.

Words on the board and what follows from them: no torch here, the supervisor reads this too. All
of it is called by the board's owner, unless it says otherwise; so whoever dies leaves either the
round that was open, or the next.
"""

from __future__ import annotations

from paceline.server.shards import cut
from paceline.transport.board import Board


class Quorum:
    """On the board it has from `first` on: rounds; gone, arrived, weight and rate a worker; and who
    counts, a worker, for even and for odd rounds.

    Round r, counted from 0, is open while r rounds are closed. Its batch is shared out among those
    who counted when it opened.
    """

    def __init__(self, board: Board, first: int, workers: int) -> None:
        self._board = board
        self._words, self._reals = board.words, board.reals
        self.rounds = first
        rows = [
            range(at, at + workers) for at in range(first + 1, first + 1 + 6 * workers, workers)
        ]
        self._gone, self._arrived, self._weights, self._rates, *self._counts = rows

    @staticmethod
    def words(workers: int) -> int:
        """How many of the board it takes."""
        return 1 + 6 * workers

    def open(self) -> int:
        """The round that is open. Anybody may ask."""
        return int(self._words[self.rounds])

    def arrive(self, worker: int, weight: int, rate: float) -> None:
        """In the round that is open."""
        self._words[self._weights[worker]] = weight
        self._reals[self._rates[worker]] = rate
        self._words[self._arrived[worker]] = self.open() + 1

    def pushes(self, enough: int) -> list[tuple[int, float]] | None:
        """Who has arrived, with its samples, if that closes the round; None if it does not.

        It takes `enough` of those who counted when it opened, or all that are left of them. Whoever
        arrived and died since counts: its gradient is whole. Whoever came back since brings
        nothing, but can close a round that nobody else is left to close.
        """
        words, now = self._words, self.open()
        here = [word for word in self._arrived if words[word] == now + 1]
        counting = [w for w, word in enumerate(self._counts[now % 2]) if words[word] == now]
        arrived = [w for w in counting if words[self._arrived[w]] == now + 1]
        missing = any(w not in arrived and not words[self._gone[w]] for w in counting)
        if not here or (missing and len(arrived) < enough):
            return None
        return [(worker, float(words[self._weights[worker]])) for worker in arrived]

    def rate(self, worker: int) -> float:
        return float(self._reals[self._rates[worker]])

    def close(self) -> None:
        """The round was applied; the next is open."""
        now = self.open() + 1
        for gone, counts in zip(self._gone, self._counts[now % 2], strict=True):
            if not self._words[gone]:
                self._words[counts] = now
        self._board.post(self.rounds, now)

    def share(self, worker: int, now: int, whole: int) -> tuple[int, int]:
        """Of a round's batch of `whole` samples. Anybody may ask, of the round that is open."""
        counting = [w for w, word in enumerate(self._counts[now % 2]) if self._words[word] == now]
        shares = dict(zip(counting, cut(whole, max(1, len(counting))), strict=False))
        return shares.get(worker, (0, 0))

    def present(self) -> list[int]:
        """Who is there. Anybody may ask."""
        return [worker for worker, word in enumerate(self._gone) if not self._words[word]]

    def changed(self, seen: list[int]) -> bool:
        """Whether others are there than were. Anybody may ask."""
        return self.present() != seen

    def finish(self, worker: int) -> None:
        self._words[self._gone[worker]] = 1

    def join(self, worker: int) -> None:
        """Another life, from the round that is open on. If its last one had arrived there, the
        step is taken again: the new gradient goes where the old one is."""
        self._words[self._arrived[worker]] = 0
        self._words[self._gone[worker]] = 0

    def go_on(self, now: int) -> None:
        """From that round, with all who are there, before anybody has begun."""
        for gone, word in zip(self._gone, self._counts[now % 2], strict=True):
            if not self._words[gone]:
                self._words[word] = now
        self._board.post(self.rounds, now)

    # Of the supervisor, who owns nothing.

    def bury(self, worker: int) -> None:
        """The worker is dead, and nobody waits for it. Twice is as good as once."""
        self._words[self._gone[worker]] = 1

    def anybody(self) -> bool:
        """Whether the parameters are left: they are in shared memory, always whole."""
        return True
