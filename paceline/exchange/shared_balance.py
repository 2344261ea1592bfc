"""Balancing over shared memory: everybody leaves its pace on the board, and computes all shares.

Even and odd rounds have words of their own: whoever is ahead writes one while others still read
the other. Nobody is two rounds ahead, since it would have waited for all in the one between.
"""

from __future__ import annotations

from paceline.exchange.balance import Balance, Pace
from paceline.exchange.base import Post
from paceline.exchange.layout import balance_words
from paceline.transport.board import Board


class SharedBalance:
    """On the board it has from `first` on: round, samples and seconds, a worker, even and odd.

    Who took part in a round is who has named it there; those deal the next among them.
    """

    def __init__(self, board: Board, first: int, post: Post) -> None:
        self._board = board
        self._index, self._workers = post.index, range(post.workers)
        half = balance_words(post.workers) // 2
        self._at = [
            [first + odd * half + 3 * worker for worker in self._workers] for odd in (False, True)
        ]
        self._balance = Balance(post.balance, self._workers)

    def leave(self, now: int, pace: Pace) -> None:
        """This worker's pace in round `now`, before it is said to have arrived there."""
        at = self._at[now % 2][self._index]
        self._board.words[at] = now
        self._board.words[at + 1] = pace.samples
        self._board.reals[at + 2] = pace.seconds

    def share(self, now: int) -> tuple[int, int] | None:
        """This worker's share after round `now`, in which all have arrived; None: as before."""
        words, reals = self._board.words, self._board.reals
        paces = {
            worker: Pace(words[at + 1], reals[at + 2])
            for worker, at in zip(self._workers, self._at[now % 2], strict=True)
            if words[at] == now
        }
        before = self._balance.shares[self._index]
        self._balance.after(paces, paces.keys())
        after = self._balance.shares[self._index]
        return after if after != before else None
