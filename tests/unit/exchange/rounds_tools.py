"""A stage on which workers take rounds, die at any access to shared memory, and come back.

Every worker is a thread, but only one moves at a time, from one access to the next; who moves next,
and who dies, is for a random generator to say. So a seed is an order of everything that happens.
"""

from __future__ import annotations

import threading
import time
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import torch
from torch import Tensor, nn

from paceline.errors import PeerLost
from paceline.exchange import shared_backup, shared_small, shared_sync
from paceline.exchange.base import Exchange, Gradient, Outcome, Post
from paceline.exchange.layout import ROLL, layout, roll
from paceline.exchange.muster import Muster, Turnout
from paceline.exchange.quorum import Quorum
from paceline.exchange.replica import Replica
from paceline.server.elementwise import Rule
from paceline.server.rules import Hyper, make_rule
from paceline.server.shards import cut
from paceline.spec import RunSpec

MOVES = 60_000  # that no play needs
SECONDS = 20.0  # in which a thread must make a move

KINDS: dict[str, Callable[[Post], Exchange]] = {
    "small": shared_small.SharedSmall,
    "sync": shared_sync.SharedSync,
    "backup": shared_backup.SharedBackup,
}


class Dead(BaseException):
    """What a worker does not survive."""


class Row(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.row = nn.Parameter(torch.zeros(size))


@dataclass(slots=True)
class Actor:
    """A thread that moves when it is told to."""

    name: str
    go: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    moved: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    struck: bool = False
    over: bool = False
    wrong: BaseException | None = None


class Accesses:
    """Words that are looked at or written by whoever's move it is."""

    def __init__(self, words: memoryview, pause: Callable[[], None]) -> None:
        self._words = words
        self._pause = pause

    def __getitem__(self, at: int | slice) -> Any:
        if isinstance(at, slice):  # one by one, as a processor reads them
            return array(self._words.format, [self[word] for word in range(at.start, at.stop)])
        self._pause()
        return self._words[at]

    def __setitem__(self, at: int, value: Any) -> None:
        self._pause()
        self._words[at] = value


class StageBoard:
    """The board as one actor has it."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.words = Accesses(stage.words, stage.pause)
        self.reals = Accesses(stage.reals, stage.pause)

    def doubles(self, first: int, count: int) -> Tensor:
        found: Tensor = torch.frombuffer(
            self._stage.area, dtype=torch.float64, count=count, offset=8 * first
        )
        return found

    def post(self, word: int, value: int) -> None:
        self.words[word] = value

    def wait(
        self,
        word: int,
        least: int,
        what: str,
        unless: Callable[[], bool] | None = None,
        peer: int = 0,
    ) -> bool:
        while self.words[word] < least:
            if unless is not None and unless():
                return False
        return True

    def until(self, true: Callable[[], bool], what: str) -> None:
        while not true():
            pass

    @contextmanager
    def owning(self, shard: int) -> Iterator[None]:
        owners, me = self._stage.owners, threading.current_thread()
        self._stage.pause()
        while owners.get(shard) is not None:
            self._stage.pause()
        owners[shard] = me
        try:
            yield
            self._stage.pause()
        finally:
            owners[shard] = None


class Stage:
    """A run of `rounds` rounds. `deaths` is how many workers die in it, `come` and `go` how many
    come later and leave before the end; `kind` as in KINDS."""

    def __init__(
        self,
        kind: str,
        seed: int | str,
        *,
        workers: int = 3,
        shards: int = 2,
        rounds: int = 5,
        deaths: int = 2,
        rule: str = "sgd",
        balance: bool = False,
        come: int = 0,
        go: int = 0,
    ) -> None:
        self.everybody = range(workers + come)
        self._coming, self._going = list(self.everybody[workers:]), go
        self.left: set[int] = set()
        self.kind, self.rounds, self.workers, self.rule = kind, rounds, workers, rule
        self.whole = 4 * workers
        self.size = self.whole
        options = {"backup": 1} if kind == "backup" else {}
        spec = RunSpec(
            strategy="ps-sync", transport="shm", workers=workers, optimizer=rule, balance=balance,
            **options,
        )  # fmt: skip
        need = layout(spec, self.size if kind != "sync" else 1 << 20, shards, 1, workers + come)
        self.area = bytearray(16 * need.board)
        self.words = memoryview(self.area).cast("q")
        self.reals = memoryview(self.area).cast("d")
        self.owners: dict[int, threading.Thread | None] = {}
        self._post = Post(
            index=0,
            workers=workers,
            room=workers + come,
            rule=rule,
            hyper=Hyper(),
            returns=True,
            shards=tuple(cut(self.size, shards)),
            board=0,
            params=torch.zeros(need.params, self.size),
            grads=torch.zeros(need.grads, self.size),
            state=torch.zeros(need.state, self.size) if need.state else None,
            journal=torch.zeros(shards * 2 * (1 + need.state) * self.size),
            backup=spec.backup,
            whole=self.whole,
            balance=balance,
        )
        self._roll = roll(spec)
        self._random = Random(seed)
        self._deaths = deaths
        self._actors: dict[str, Actor] = {}
        self._by_thread: dict[int, Actor] = {}
        self.lives = [0] * workers + [1] * come
        self.turnouts: dict[int, Turnout] = {}
        self.closed: dict[int, list[tuple[int, float]]] = {}
        self.used: dict[tuple[int, int], tuple[int, int]] = {}  # round, worker: share
        self.values: dict[int, Tensor] = {}  # by version
        self.finals: dict[int, Tensor] = {}
        self.finished: set[int] = set()
        self.nobody = False
        self.calm = False

    # Moving.

    def pause(self, half: Callable[[], None] | None = None) -> None:
        """The end of a move. Whoever is struck does no more; `half` is what it did of the next."""
        actor = self._by_thread.get(threading.get_ident())
        if actor is None:
            return  # whoever looks at the stage from outside
        actor.moved.release()
        assert actor.go.acquire(timeout=SECONDS)
        if actor.struck:
            if half is not None:
                half()
            raise Dead

    def _start(self, name: str, play: Callable[[], None]) -> None:
        actor = self._actors[name] = Actor(name)

        def run() -> None:
            self._by_thread[threading.get_ident()] = actor
            assert actor.go.acquire(timeout=SECONDS)
            try:
                if not actor.struck:
                    play()
            except (Dead, PeerLost):  # whoever has lost all others is started again, too
                pass
            except BaseException as wrong:  # noqa: BLE001  told by the one who watches
                actor.wrong = wrong
            finally:
                del self._by_thread[threading.get_ident()]
                actor.over = True
                actor.moved.release()

        threading.Thread(target=run, daemon=True).start()

    def play(self) -> None:
        """To the end: all have finished, or nobody is left."""
        for worker in range(self.workers):
            self._live(worker)
        self._start("supervisor", self._supervise)
        try:
            for _ in range(MOVES):
                if not (moving := [a for a in self._actors.values() if not a.over]):
                    return
                actor = self._random.choice(moving)
                if self._strikes(actor):
                    actor.struck = True
                actor.go.release()
                assert actor.moved.acquire(timeout=SECONDS)
                if actor.wrong is not None:
                    raise actor.wrong
            raise AssertionError(f"somebody waits for ever; finished: {self.finished}")
        finally:
            for actor in self._actors.values():
                actor.struck = True
                actor.go.release()

    def _strikes(self, actor: Actor) -> bool:
        if actor.name == "supervisor" or not self._deaths or self._random.random() > 0.004:
            return False
        self._deaths -= 1
        return True

    # What they do.

    def _supervise(self) -> None:
        assert self._roll is not None
        board: Any = StageBoard(self)
        found: Muster | Quorum = self._roll(board, ROLL, self.workers)
        if self._coming:
            found = Muster(board, ROLL, self.workers, len(self.everybody))
        while len(self.finals) + len(self.left) < len(self.everybody):
            self.pause()
            self.calm = len(self.finished) + len(self.left) == len(self.everybody)
            if self._coming and self._random.random() < 0.05:
                assert isinstance(found, Muster)
                found.seat(self._coming[0])
                self._live(self._coming.pop(0))
            for worker in self.everybody:
                actor = self._actors.get(f"worker-{worker}")
                if actor and actor.over and worker not in self.finals and worker not in self.left:
                    found.bury(worker)
                    if not found.anybody():
                        self.nobody = True
                        for other in self._actors.values():
                            other.struck = True
                        return
                    self.lives[worker] += 1
                    self._live(worker)

    def _live(self, worker: int) -> None:
        self._start(f"worker-{worker}", lambda: self._work(worker, self.lives[worker]))

    def _work(self, worker: int, life: int) -> None:
        exchange = KINDS[self.kind](replace(self._post, index=worker, life=life))
        replica = Replica(Row(self.size))
        exchange.start(replica)
        now, share = exchange.round, exchange.share or cut(self.whole, self.workers)[worker]
        while now < self.rounds and not exchange.over:
            self.used[now, worker] = share
            parts = self._parts(worker)
            outcome = self._step(exchange, replica, share, parts)
            if self.kind != "backup":  # there another may be two rounds ahead by now
                seen = self.values.setdefault(outcome.version, replica.flat.clone())
                torch.testing.assert_close(replica.flat, seen, rtol=0, atol=0)
            now, share = now + 1 + outcome.skipped, outcome.share or share
            if parts:
                assert outcome.stop
                exchange.leave()
                self.left.add(worker)
                return
        exchange.finish()
        self.finished.add(worker)
        while not self.calm:
            self.pause()
        exchange.close()
        self.finals[worker] = replica.flat.clone()

    def _parts(self, worker: int) -> bool:
        """Whether this worker leaves after its next step; one always stays."""
        if not worker or not self._going or self._random.random() > 0.3:
            return False
        self._going -= 1
        return True

    def _step(
        self, exchange: Exchange, replica: Replica, share: tuple[int, int], parts: bool = False
    ) -> Outcome:
        begin, end = share
        if begin < end:
            replica.parameters[0].grad = self.gradient(share)
        seconds = (end - begin) * self._random.uniform(50, 400)  # nothing beside it takes long
        began = time.monotonic() - seconds
        gradient = Gradient(
            end - begin, self.whole, float(self.whole), False, parting=parts, began=began
        )
        return exchange.step(gradient, lambda: 0.0)

    def gradient(self, share: tuple[int, int]) -> Tensor:
        """Such that each sample of a round adds 1 to its number, by plain descent."""
        found = torch.zeros(self.size)
        found[slice(*share)] = -1.0 / (share[1] - share[0])
        return found

    # What must come of it.

    def due(self, rounds: list[list[tuple[int, float]]]) -> Tensor:
        """A lone worker's parameters after these rounds, as they were closed."""
        values = torch.zeros(self.size)
        lone = make_rule(self.rule, self.size, Hyper())
        for now, pushes in enumerate(rounds):
            total = sum(weight for _, weight in pushes)
            if total:
                mean = sum(self.gradient(self.used[now, w]) * (n / total) for w, n in pushes if n)
                assert isinstance(mean, Tensor)
                part = (values, values, mean, slice(0, self.size))
                lone.update([part], float(self.whole), now + 1)
        return values


@contextmanager
def on_stage(stage: Stage) -> Iterator[None]:
    """Exchanges are the stage's: its board, and an end in the middle of a chunk."""

    def board(*_: Any) -> StageBoard:
        return StageBoard(stage)

    originals = [(module, module.Board) for module in (shared_small, shared_sync, shared_backup)]
    turnout, close, pushes = Muster.turnout, Quorum.close, Quorum.pushes
    steps = {kind: kind.__dict__["step"] for kind in _rules(Rule) if "step" in kind.__dict__}
    last: dict[int, list[tuple[int, float]]] = {}

    def told(self: Muster, now: int) -> Turnout:
        found = turnout(self, now)
        assert stage.turnouts.setdefault(now, found) == found
        return found

    def looked(self: Quorum, enough: int) -> list[tuple[int, float]] | None:
        found = pushes(self, enough)
        if found is not None:
            last[threading.get_ident()] = found
        return found

    def closed(self: Quorum) -> None:
        now = self.open()
        stage.closed[now] = last[threading.get_ident()]
        close(self)

    def mortal(kind: type[Rule]) -> Callable[..., None]:
        def step(self: Rule, new: Tensor, old: Tensor, *more: Any) -> None:
            def half() -> None:
                before = new.clone()
                steps[kind](self, new, old, *more)
                new[len(new) // 2 :] = before[len(new) // 2 :]

            stage.pause(half)
            steps[kind](self, new, old, *more)

        return step

    for module, _ in originals:
        module.Board = board  # type: ignore[attr-defined]
    Muster.turnout, Quorum.close, Quorum.pushes = told, closed, looked  # type: ignore[method-assign]
    for kind in steps:
        kind.step = mortal(kind)  # type: ignore[method-assign]
    try:
        yield
    finally:
        for module, original in originals:
            module.Board = original  # type: ignore[attr-defined]
        Muster.turnout, Quorum.close, Quorum.pushes = turnout, close, pushes  # type: ignore[method-assign]
        for kind, step in steps.items():
            kind.step = step  # type: ignore[method-assign]


def _rules(kind: type[Rule]) -> list[type[Rule]]:
    return [kind, *(found for below in kind.__subclasses__() for found in _rules(below))]
