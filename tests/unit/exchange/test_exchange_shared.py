"""Over shared memory the workers are the servers: they leave when they like, and nobody hangs."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
import torch
from served_tools import at_the_same_time
from torch import Tensor, nn

from paceline.exchange.base import Among, Exchange, Gradient, Outcome, Post
from paceline.exchange.hogwild import Hogwild
from paceline.exchange.layout import SMALL, layout
from paceline.exchange.make import make_exchange
from paceline.exchange.replica import Replica
from paceline.exchange.shared_async import SharedAsync
from paceline.exchange.shared_backup import SharedBackup
from paceline.exchange.shared_small import SharedSmall
from paceline.exchange.shared_sync import SharedSync
from paceline.kernels.load import kernels
from paceline.server.catalog import LAYERWISE, RULES, STATES
from paceline.server.rules import Hyper, make_rule
from paceline.server.shards import cut
from paceline.spec import RunSpec
from paceline.transport import memory
from paceline.transport.board import Board, size_board

pytestmark = [
    pytest.mark.timeout(30),
    pytest.mark.skipif(not memory.available(), reason="no memfd here"),
]

SIZE = 11


class Row(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.row = nn.Parameter(torch.zeros(SIZE))


class Place:
    """Shared memory for some workers, all of them in this process."""

    def __init__(
        self,
        strategy: str,
        workers: int,
        servers: int = 1,
        rule: str = "sgd",
        layers: int = 1,
        small: bool = False,
        **options: Any,
    ) -> None:
        self.workers, self.rule = workers, rule
        self.shards = tuple(cut(SIZE, servers))
        self.spec = RunSpec(strategy=strategy, workers=workers, optimizer=rule, **options)
        self.small = small
        self.need = layout(self.spec, SIZE if small else SMALL + 1, servers, layers)
        self._fds: list[int] = []
        self.board = self._segment()
        size_board(self.board, self.need.board)

    def _segment(self) -> int:
        self._fds.append(memory.new_segment("test"))
        return self._fds[-1]

    def rows(self, count: int) -> Tensor | None:
        if not count:
            return None
        fd = self._segment()
        memory.size_segment(fd, count * SIZE)
        return memory.floats(fd, (count, SIZE))

    def posts(self) -> list[Post]:
        params, grads, state = (self.rows(count) for count in self.need[:3])
        journal = torch.zeros(self.need.journal) if self.need.journal else None
        return [
            Post(
                index=index,
                workers=self.workers,
                rule=self.rule,
                hyper=Hyper(),
                shards=self.shards,
                board=self.board,
                params=params,
                grads=grads,
                state=state,
                journal=journal,
                bound=self.spec.bound or 0,
                backup=self.spec.backup,
                whole=SIZE * self.workers,
                balance=self.spec.balance,
                damp_stale=self.spec.damp_stale,
                kernels=kernels(True),
            )
            for index in range(self.workers)
        ]

    def close(self) -> None:
        for fd in self._fds:
            os.close(fd)


@pytest.fixture(autouse=True)
def _threads_own_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel's record locks are between processes; here workers are threads of one."""
    locks: dict[int, threading.Lock] = {}
    between_processes = Board.owning

    @contextmanager
    def owning(self: Board, shard: int) -> Iterator[None]:
        with locks.setdefault(shard, threading.Lock()), between_processes(self, shard):
            yield

    monkeypatch.setattr(Board, "owning", owning)


@pytest.fixture
def place() -> Iterator[Callable[..., Place]]:
    made: list[Place] = []

    def make(*how: Any, **options: Any) -> Place:
        made.append(Place(*how, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


def copy(_: str, tensor: Tensor) -> Tensor:
    return tensor.clone()


def push(exchange: Exchange, replica: Replica, value: float, weight: int = 1) -> Outcome:
    if weight:
        replica.parameters[0].grad = torch.full((SIZE,), value)
    return exchange.step(Gradient(weight, 0, 1.0, False), lambda: 0.0)


def synchronous(post: Post, small: bool) -> Exchange:
    return SharedSmall(post) if small else SharedSync(post)


def in_step(place: Place, steps: tuple[int, ...]) -> list[Replica]:
    """Each worker takes so many rounds, gives −(its number + 1) in each, and leaves."""
    replicas: list[Replica] = []

    def work(post: Post, count: int, replica: Replica) -> None:
        exchange = synchronous(post, place.small)
        exchange.start(replica)
        for _ in range(count):
            push(exchange, replica, -(post.index + 1.0))
        exchange.finish()
        finished.wait(10)
        exchange.close()

    finished = threading.Barrier(len(steps))
    threads = []
    for post, count in zip(place.posts(), steps, strict=True):
        replicas.append(Replica(Row()))
        thread = threading.Thread(target=work, args=(post, count, replicas[-1]), daemon=True)
        threads.append(thread)
        thread.start()
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive(), "a worker waits for one that has left"
    return replicas


def means(steps: tuple[int, ...]) -> list[float]:
    """What each round gives, less its sign: the mean over those that still take part."""
    rounds = [
        [worker + 1.0 for worker, count in enumerate(steps) if count > turn]
        for turn in range(max(steps))
    ]
    return [sum(present) / len(present) for present in rounds]


uneven = pytest.mark.parametrize(
    "steps", [(4, 4, 4), (1, 3, 6), (6, 3, 1), (1, 1, 7), (0, 0, 0)], ids=str
)


sizes = pytest.mark.parametrize("small", [False, True], ids=["large", "small"])


@sizes
@pytest.mark.parametrize("servers", [1, 2, 3, 5])
@uneven
def test_in_step_workers_leave_at_different_rounds(
    small: bool, servers: int, steps: tuple[int, ...], place: Callable[..., Place]
) -> None:
    for replica in in_step(place("ps-sync", 3, servers, small=small), steps):
        torch.testing.assert_close(replica.flat, torch.full((SIZE,), sum(means(steps), 0.0)))


@sizes
@pytest.mark.parametrize("servers", [1, 3])
@uneven
def test_in_step_all_agree_on_shares_by_speed(
    small: bool, servers: int, steps: tuple[int, ...], place: Callable[..., Place]
) -> None:
    """Those who took part in a round share the next one, whoever else has left by then."""
    where = place("ps-sync", 3, servers, small=small, balance=True)
    whole, finished = 3 * SIZE, threading.Barrier(3)
    dealt: list[list[tuple[int, int]]] = [[(SIZE * w, SIZE * (w + 1))] for w in range(3)]

    def work(post: Post, count: int) -> None:
        exchange, replica, mine = synchronous(post, small), Replica(Row()), dealt[post.index]
        exchange.start(replica)
        for _ in range(count):
            begin, end = mine[-1]
            replica.parameters[0].grad = torch.zeros(SIZE)
            took = time.monotonic() - (end - begin) * (post.index + 1)  # seconds ago
            gradient = Gradient(end - begin, whole, 1.0, False, began=took)
            mine.append(exchange.step(gradient, lambda: 0.0).share or mine[-1])
        exchange.finish()
        finished.wait(10)
        exchange.close()

    posts = zip(where.posts(), steps, strict=True)
    threads = [threading.Thread(target=work, args=pair, daemon=True) for pair in posts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive(), "a worker waits for one that has left"
    for turn in range(max(steps) + 1):
        shares = [mine[turn] for mine in dealt if len(mine) > turn]
        assert [begin for begin, _ in shares] == [0, *(end for _, end in shares[:-1])]
        assert shares[-1][1] == whole
    if min(steps) > 2:
        assert [end - begin for begin, end in (mine[3] for mine in dealt)] == [18, 9, 6]


@pytest.mark.parametrize("servers", [1, 2, 5])
@uneven
def test_in_step_a_large_gradient_is_read_where_backward_left_it(
    servers: int,
    steps: tuple[int, ...],
    place: Callable[..., Place],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("paceline.exchange.shared_sync.LARGE", 1)
    for replica in in_step(place("ps-sync", 3, servers), steps):
        torch.testing.assert_close(replica.flat, torch.full((SIZE,), sum(means(steps), 0.0)))
        assert replica.parameters[0].grad is None


@pytest.mark.parametrize("rule", sorted(LAYERWISE))
@pytest.mark.parametrize("servers", [1, 2, 5])
@uneven
def test_in_step_those_who_leave_still_measure_their_part_of_a_layer(
    rule: str, servers: int, steps: tuple[int, ...], place: Callable[..., Place]
) -> None:
    """There is one layer, and every shard has a part of it."""
    lone, values = make_rule(rule, SIZE, Hyper()), torch.zeros(SIZE)
    for t, mean in enumerate(means(steps), start=1):
        lone.update([(values, values, torch.full((SIZE,), -mean), slice(0, SIZE))], 1.0, t)
    for replica in in_step(place("ps-sync", 3, servers, rule), steps):
        torch.testing.assert_close(replica.flat, values, rtol=1e-6, atol=1e-6)


@sizes
def test_in_step_samples_weigh(small: bool, place: Callable[..., Place]) -> None:
    posts = place("ps-sync", 2, 2, small=small).posts()
    replicas = [Replica(Row()), Replica(Row())]

    def work(post: Post, weight: int) -> None:
        exchange = synchronous(post, small)
        exchange.start(replicas[post.index])
        push(exchange, replicas[post.index], -4.0, weight)
        push(exchange, replicas[post.index], -float(weight), weight)
        exchange.finish()

    threads = [
        threading.Thread(target=work, args=(post, weight), daemon=True)
        for post, weight in zip(posts, (0, 5), strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert torch.equal(replicas[0].flat, torch.full((SIZE,), 9.0))


@pytest.mark.parametrize(
    ("rule", "servers"),
    [
        (rule, servers)
        for rule in RULES
        for servers in (1, 3)
        if servers == 1 or rule not in LAYERWISE
    ],
)
def test_one_after_another_at_once_is_one_worker(
    rule: str, servers: int, place: Callable[..., Place]
) -> None:
    """Whoever pushes takes the rule's memory along, in shared memory too."""
    posts = place("ps-async", 3, servers, rule).posts()
    workers = []
    for post in posts:
        exchange, replica = SharedAsync(post), Replica(Row())
        exchange.start(replica)
        workers.append((exchange, replica))
    lone, values = make_rule(rule, SIZE, Hyper()), torch.zeros(SIZE)
    for t in range(1, 10):
        exchange, replica = workers[t % 3]
        push(exchange, replica, float(t))
        grad = torch.full((SIZE,), float(t))
        lone.update([(values, values, grad, slice(0, SIZE))], 1.0, t)
        torch.testing.assert_close(replica.flat, values)
    for exchange, replica in workers:
        exchange.finish()
        exchange.close()
        torch.testing.assert_close(replica.flat, values)
    applied = [hosted.applied for exchange, _ in workers for hosted in exchange.hosted()]
    assert applied == [9] * servers


def test_at_once_nobody_writes_what_another_reads(place: Callable[..., Place]) -> None:
    posts = place("ps-async", 2, 2).posts()
    (one, first), (two, second) = [(SharedAsync(post), Replica(Row())) for post in posts]
    one.start(first)
    two.start(second)
    push(one, first, -1.0)
    assert torch.equal(second.flat, torch.zeros(SIZE))
    push(two, second, -1.0)
    assert torch.equal(first.flat, torch.ones(SIZE))
    assert torch.equal(second.flat, torch.full((SIZE,), 2.0))


@pytest.mark.parametrize("rule", ["sgd", "adam"])
def test_at_once_parts_of_different_moments_are_made_up_for(
    rule: str, place: Callable[..., Place]
) -> None:
    """What a shard had not when it was kept is pushed again, and there alone."""

    def crew() -> list[tuple[SharedAsync, Replica]]:
        found = [(SharedAsync(p), Replica(Row())) for p in place("ps-async", 2, 2, rule).posts()]
        for exchange, replica in found:
            exchange.start(replica)
        return found

    old, new = crew(), crew()
    push(*old[1], 1.0)
    kept = [old[0][0].keep(Among(0, 2), copy)]
    push(*old[0], 2.0)
    push(*old[1], 3.0)
    kept.append(old[1][0].keep(Among(1, 2), copy))
    at_the_same_time(*(partial(e.restore, k) for (e, _), k in zip(new, kept, strict=True)))
    assert [exchange.taken for exchange, _ in new] == [0, 1]
    push(*new[0], 2.0)
    push(*new[1], 3.0)
    assert torch.equal(new[1][1].flat, old[1][1].flat)


def test_every_rule_says_how_much_it_keeps() -> None:
    assert STATES.keys() == RULES.keys()
    for name, states in STATES.items():
        assert make_rule(name, 3, Hyper()).state.shape == (states, 3)


# Those who do not wait for all.


def started(kind: type[Exchange], place: Place) -> list[tuple[Exchange, Replica]]:
    workers = []
    for post in place.posts():
        exchange, replica = kind(post), Replica(Row())  # type: ignore[call-arg]
        exchange.start(replica)
        workers.append((exchange, replica))
    return workers


@pytest.mark.parametrize("damp", [False, True])
@pytest.mark.parametrize(("strategy", "kind"), [("ps-async", SharedAsync), ("hogwild", Hogwild)])
def test_a_stale_gradient_counts_for_less_if_asked(
    strategy: str, kind: type[Exchange], damp: bool, place: Callable[..., Place]
) -> None:
    """The first pushes four times; then the second, of the parameters from before."""
    (one, first), (two, second) = started(kind, place(strategy, 2, damp_stale=damp))
    for _ in range(4):
        assert push(one, first, -1.0).staleness == 0
    assert push(two, second, -1.0).staleness == 4
    assert torch.equal(second.flat, torch.full((SIZE,), 4.25 if damp else 5.0))
    assert push(two, second, -1.0).staleness == 0


def test_bounded_whoever_is_too_far_ahead_waits(place: Callable[..., Place]) -> None:
    (one, first), (two, second) = started(SharedAsync, place("ssp", 2, bound=2))
    push(one, first, -1.0)  # the slowest has taken none: one more may begin
    ahead = threading.Thread(target=push, args=(one, first, -1.0), daemon=True)
    ahead.start()
    ahead.join(0.3)
    assert ahead.is_alive()
    push(two, second, -1.0)
    ahead.join(10)
    assert not ahead.is_alive()
    assert torch.equal(first.flat, torch.full((SIZE,), 3.0))  # with what came meanwhile
    two.finish()
    for _ in range(5):  # nobody waits for one that has left
        push(one, first, -1.0)
    one.finish()
    for exchange, replica in ((one, first), (two, second)):
        exchange.close()
        assert torch.equal(replica.flat, torch.full((SIZE,), 8.0))


def test_backup_what_is_late_is_dropped_and_what_was_missed_is_told(
    place: Callable[..., Place],
) -> None:
    (one, first), (two, second) = started(SharedBackup, place("ps-sync", 2, backup=1))
    for _ in range(3):
        outcome = push(one, first, -1.0)
        assert (outcome.dropped, outcome.skipped) == (False, 0)
    outcome = push(two, second, -100.0)  # of round 1, which closed long ago
    assert (outcome.dropped, outcome.skipped, outcome.version) == (True, 2, 3)
    assert torch.equal(second.flat, torch.full((SIZE,), 3.0))
    outcome = push(two, second, -2.0)  # of round 4, before the other
    assert (outcome.dropped, outcome.skipped, outcome.version) == (False, 0, 4)
    outcome = push(one, first, -100.0)
    assert (outcome.dropped, outcome.skipped, outcome.version) == (True, 0, 4)
    outcome = push(one, first, 0.0, weight=0)  # nothing to give is a round all the same
    assert (outcome.dropped, outcome.version) == (False, 5)
    for exchange, replica in ((one, first), (two, second)):
        exchange.finish()
        exchange.close()
        assert torch.equal(replica.flat, torch.full((SIZE,), 5.0))
    assert [hosted.applied for hosted in one.hosted()] == [5]


def test_backup_who_starts_late_has_missed_rounds(place: Callable[..., Place]) -> None:
    posts = place("ps-sync", 2, backup=1).posts()
    (one, first), (two, second) = [(SharedBackup(post), Replica(Row())) for post in posts]
    one.start(first)
    for _ in range(3):
        push(one, first, -1.0)
    two.start(second)
    outcome = push(two, second, -100.0)
    assert (outcome.dropped, outcome.skipped, outcome.version) == (True, 2, 3)
    assert torch.equal(second.flat, torch.full((SIZE,), 3.0))


@pytest.mark.parametrize("rule", ["momentum", "adam", "lars"])
def test_backup_whoever_closes_a_round_has_the_rules_memory(
    rule: str, place: Callable[..., Place]
) -> None:
    """Two workers in turn, each late once in between."""
    (one, first), (two, second) = started(SharedBackup, place("ps-sync", 2, 1, rule, backup=1))
    lone, values = make_rule(rule, SIZE, Hyper()), torch.zeros(SIZE)
    values += 1.0
    for replica in (first, second):
        replica.flat.fill_(1.0)
    for t in range(1, 7):
        exchange, replica = ((one, first), (two, second))[t % 2]
        other, its = ((two, second), (one, first))[t % 2]
        push(exchange, replica, float(t))
        lone.update([(values, values, torch.full((SIZE,), float(t)), slice(0, SIZE))], 1.0, t)
        assert push(other, its, 100.0).dropped
        torch.testing.assert_close(replica.flat, values)
        torch.testing.assert_close(its.flat, values)


@pytest.mark.parametrize("steps", [(4, 4), (2, 7), (7, 2), (0, 3)], ids=str)
def test_local_sgd_all_end_on_the_last_average(
    steps: tuple[int, int], place: Callable[..., Place]
) -> None:
    """Averaged every two steps: who leaves early has in the end what the others made of it."""
    replicas = [Replica(Row()), Replica(Row())]
    shared = place("local-sgd", 2, 2, sync_every=2)
    spec = shared.spec

    def work(post: Post, count: int) -> None:
        exchange, replica = make_exchange(spec, post), replicas[post.index]
        exchange.start(replica)
        for _ in range(count):
            push(exchange, replica, -(post.index + 1.0))
        exchange.finish()
        ended.wait(10)
        exchange.close()

    ended = threading.Barrier(2)
    threads = [
        threading.Thread(target=work, args=(post, count), daemon=True)
        for post, count in zip(shared.posts(), steps, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()
    # A round's drifts, weighed by the steps behind them.
    total = 0.0
    for begin in range(0, max(steps), 2):
        took = [min(2, max(0, count - begin)) for count in steps]
        total += sum(n * n * (w + 1.0) for w, n in enumerate(took)) / sum(took)
    for replica in replicas:
        torch.testing.assert_close(replica.flat, torch.full((SIZE,), total))
