"""Who takes part in which round over shared memory, whoever dies and comes back meanwhile.

Words on the board and what follows from them: no torch here, the supervisor reads this too.

    worker       begin a round ─► name it ─► arrive ─► wait for all ─► turnout ─► …
    in a new life      ask ─► somebody begins round r and lets it in ─► it takes part from r + 1 on
    supervisor   bury the dead: nobody waits for it any more

A worker names a round once its gradient for it is whole; whoever has named it took part, even if
it died right after. All who close a round have waited for everybody to arrive or to be buried, and
a word that names a round stays until two rounds later, so all of them come to the same turnout,
whatever moment a death falls on.

Whoever begins round r lets in those who ask, before it arrives there itself: everybody who closes
round r + 1 has seen that, and waits for the newcomer. It does not matter who lets it in, and if
more than one does, they write the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from paceline.transport import slate
from paceline.transport.board import GONE, Board

NAMED, TOLD, INVITED = range(3)  # of a worker in a round: words,
RATE, SECONDS = range(2)  # and reals
WORDS, REALS = 3, 2
ASKED, STOP, KEEP, LEAVE = 8, 1, 2, 4  # told is weight · ASKED, and what was asked


class Turnout(NamedTuple):
    """Who took part in a round, with the samples behind each gradient, and what they brought."""

    pushes: list[tuple[int, float]]
    seconds: Sequence[float]  # that each computed
    rate: float
    stop: bool  # one of them was asked to end
    keep: bool  # all of them were asked for a checkpoint
    invited: list[int]  # take part in the next round for the first time in this life
    leaving: Sequence[int] = ()  # took part for the last time

    def members(self) -> list[int]:
        """Who shares the next round's batch."""
        took = [worker for worker, _ in self.pushes]
        if self.invited or self.leaving:
            return sorted({*took}.difference(self.leaving) | {*self.invited})
        return took


class Muster:
    """On the board it has from `first` on: arrived, asks, finished, cost a worker; given; how many
    have come to the `workers` of the start; and for even and for odd rounds three words a worker,
    then two reals a worker. There is `room` for more workers than there are, but nobody looks at
    empty seats.

    A worker that has left or is buried has arrived at GONE. Even and odd rounds are apart because
    whoever is ahead writes one while others still read the other; nobody is two rounds ahead.
    What is told of a round is read whole, in one call, and a round like the one before is seen at
    one look: word by word would be slow where a step is short.
    """

    def __init__(self, board: Board, first: int, workers: int, room: int = 0) -> None:
        self._board = board
        self._words, self._reals = board.words, board.reals
        self._workers = workers
        self._room = room = max(room, workers)
        self._first = first
        self._costs = range(first + 3 * room, first + 4 * room)
        self._given = self._costs.stop
        self._more = self._given + 1
        begin, each = self._more + 1, (WORDS + REALS) * room
        self._told_at = begin, begin + each  # in even and in odd rounds
        self._told: list[int] = []  # in the round that was looked at last, if all took part
        self._calm = Turnout([], [], 0.0, False, False, [])  # and what it came to
        self._come = -1
        self._look()

    def _look(self) -> None:
        """Take note of those who have come since. Whoever lets one in has seen it come, so all who
        have waited for that one know of it."""
        come = self._words[self._more]
        self._come, self._count = come, self._workers + come
        self._arrived, self._asks, self._finished = (
            range(at, at + self._count) for at in range(self._first, self._costs.start, self._room)
        )
        self._all_arrived = slice(self._arrived.start, self._arrived.stop)
        self._all_asks = slice(self._asks.start, self._asks.stop)
        self._rows = [
            (slice(at, at + WORDS * self._count), slice(reals, reals + REALS * self._count))
            for at in self._told_at
            for reals in [at + WORDS * self._room]
        ]

    @staticmethod
    def words(room: int) -> int:
        """How many of the board it takes."""
        return (4 + 2 * (WORDS + REALS)) * room + 2

    def _word(self, worker: int, now: int, which: int) -> int:
        return self._told_at[now % 2] + WORDS * worker + which

    # A round.

    def begin(self, now: int) -> None:
        """Let in those who ask, for the round after this one. Then the caller arrives in it."""
        words = self._words
        if words[self._more] != self._come:
            self._look()
        if not any(words[self._all_asks]):
            return
        for worker, asks in enumerate(self._asks):
            if words[asks] and words[self._arrived[worker]] == GONE:
                words[self._word(worker, now, INVITED)] = now
                words[self._arrived[worker]] = now

    def arrive(
        self,
        worker: int,
        now: int,
        weight: int,
        rate: float,
        *,
        seconds: float = 0.0,
        stopping: bool = False,
        keeping: bool = False,
        leaving: bool = False,
    ) -> None:
        """The worker's gradient is where others can read it."""
        begin = self._told_at[now % 2]
        at, reals = begin + WORDS * worker, begin + WORDS * self._room + REALS * worker
        asked = stopping * STOP + keeping * KEEP + leaving * LEAVE
        self._reals[reals + RATE] = rate
        self._reals[reals + SECONDS] = seconds
        self._words[at + TOLD] = weight * ASKED + asked
        self._words[at + NAMED] = now  # last: what is named is whole
        self._board.post(self._arrived[worker], now)

    def complete(self, now: int) -> bool:
        """Whether all have arrived in this round, or left."""
        return bool(min(self._words[self._all_arrived].tolist()) >= now)

    def wait(self, now: int) -> None:
        """Until it is complete."""
        for worker, word in enumerate(self._arrived):
            what = f"worker-{worker} in round {now}"
            self._board.wait(word, now, what, peer=slate.worker(worker))

    def turnout(self, now: int) -> Turnout:
        """Of a round that is complete: the same for all who ask."""
        words = self._words
        if words[self._more] != self._come:
            self._look()
        count, (of, more) = self._count, self._rows[now % 2]
        row, spent = words[of].tolist(), self._reals[more].tolist()
        told, seconds = row[TOLD::WORDS], spent[SECONDS::REALS]
        # A round like the last: all have named it, and nobody is invited to it.
        if told == self._told and row.count(now) == count == row[NAMED::WORDS].count(now):
            pushes, _, _, stop, keep, _, leaving = self._calm
            return Turnout(pushes, seconds, spent[RATE], stop, keep, [], leaving)
        names, news = row[NAMED::WORDS], row[INVITED::WORDS]
        took = [worker for worker in range(count) if names[worker] == now]
        found = Turnout(
            pushes=[(worker, float(told[worker] // ASKED)) for worker in took],
            seconds=[seconds[worker] for worker in took],
            rate=spent[REALS * took[0] + RATE] if took else 0.0,
            stop=any(told[worker] & STOP for worker in took),
            keep=all(told[worker] & KEEP for worker in took),
            invited=[worker for worker in range(count) if news[worker] == now],
            leaving=[worker for worker in took if told[worker] & LEAVE],
        )
        if len(took) == count:
            self._told, self._calm = told, found
        return found

    def serves(self, worker: int, now: int) -> bool:
        """Whether a worker is there to serve what is its own in a round that is complete.

        Who took part and is let in again in the same round has died in between.
        """
        words = self._words
        let_in_again = words[self._word(worker, now, INVITED)] == now
        alive = words[self._arrived[worker]] != GONE and not let_in_again
        return alive and bool(words[self._word(worker, now, NAMED)] == now)

    def finish(self, worker: int) -> None:
        """The worker takes part in no more rounds."""
        self._words[self._finished[worker]] = 1
        self._board.post(self._arrived[worker], GONE)

    def leave(self, worker: int) -> None:
        """The worker goes, and the run goes on without it: that is no sign of the end."""
        self._board.post(self._arrived[worker], GONE)

    # Coming back, or for the first time while others are at it.

    def ask(self, worker: int) -> int | None:
        """Be let in: after which round; None if there is nothing left to take part in."""
        words, mine = self._words, self._arrived[worker]
        words[self._asks[worker]] = 1
        self._board.until(
            lambda: words[mine] != GONE or self.over(), f"anybody to let worker-{worker} in"
        )
        words[self._asks[worker]] = 0
        self._look()
        return None if words[mine] == GONE else int(words[mine])

    def give(self, now: int, costs: list[float]) -> None:
        """Whoever was let in in this round has all it needs; `costs` are the workers', or 0."""
        for word, cost in zip(self._costs, costs, strict=True):
            self._reals[word] = cost
        self._board.post(self._given, now)

    def given(self, now: int) -> bool:
        return bool(self._words[self._given] >= now)

    def await_given(self, now: int) -> bool:
        """Wait for what whoever was let in needs: whether it was given, or nobody is left to."""
        self.wait(now)

        def nobody() -> bool:
            return not any(self.serves(other, now) for other in range(self._count))

        self._board.until(lambda: self.given(now) or nobody(), f"the parameters of round {now}")
        return self.given(now)  # whoever has left gave before

    def costs(self) -> list[float]:
        """What was given."""
        return [self._reals[word] for word in self._costs]

    def over(self) -> bool:
        """Whether nobody takes part any more, since some have finished."""
        self._look()
        words = self._words
        gone = all(words[word] == GONE for word in self._arrived)
        return gone and any(words[word] for word in self._finished)

    # Of the supervisor.

    def seat(self, worker: int) -> None:
        """There is such a worker from now on. It takes part once it has asked."""
        come = worker + 1 - self._workers
        if come > self._words[self._more]:
            self._words[self._first + worker] = GONE
            self._board.post(self._more, come)
            self._look()

    def bury(self, worker: int) -> None:
        """The worker is dead, and nobody waits for it. Twice is as good as once."""
        self._words[self._asks[worker]] = 0
        if self._words[self._arrived[worker]] != GONE:
            self._board.post(self._arrived[worker], GONE)

    def anybody(self) -> bool:
        """Whether somebody is left who has the parameters."""
        words = self._words
        takes_part = any(words[word] != GONE for word in self._arrived)
        return takes_part or any(words[word] for word in self._finished)
