"""After a death survivors may be a round apart. Here each moment of it is chosen: threads for
workers, and a group that breaks where it is told to."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from paceline.data.sampler import Order, slices
from paceline.errors import PeerLost
from paceline.exchange import allreduce
from paceline.exchange.allreduce import AllReduce
from paceline.exchange.base import Exchange, Gradient, Post
from paceline.exchange.local import Local
from paceline.exchange.local_sgd import LocalSgd
from paceline.exchange.replica import Replica
from paceline.launch.generations import Generations
from paceline.server.rules import Hyper
from paceline.types import Parked, Plan

WORKERS, SAMPLES, BATCH, EPOCHS, EVERY = 3, 60, 2, 6, 3
WHOLE = BATCH * WORKERS
PATIENCE = 10.0

pytestmark = pytest.mark.timeout(30)


class Died(Exception):
    """A worker was killed."""


@dataclass
class Break:
    """In the group's n-th sum worker `victim` dies; of the others only `finishers` get the sum."""

    generation: int
    sum: int
    victim: int
    finishers: set[int] = field(default_factory=set)


class Link:
    """What the members of one generation give one another. Who is gone has given what it gave."""

    def __init__(self, members: tuple[int, ...]) -> None:
        self._members = members
        self._lock = threading.Condition()
        self._given: dict[tuple[int, int], Tensor] = {}
        self._closed: set[int] = set()

    def swap(self, n: int, index: int, mine: Tensor) -> list[Tensor]:
        """Everybody's n-th, once all have given it; PeerLost if somebody left before that."""

        def there() -> bool:
            return all((n, m) in self._given for m in self._members)

        with self._lock:
            self._given[n, index] = mine.clone()
            self._lock.notify_all()
            self._lock.wait_for(lambda: there() or self._closed, PATIENCE)
            if not there():
                raise PeerLost("somebody is gone")
            return [self._given[n, member] for member in self._members]

    def close(self, index: int) -> None:
        with self._lock:
            self._closed.add(index)
            self._lock.notify_all()


class Hub:
    """Everybody's groups and plans."""

    def __init__(self, workers: int, breaks: list[Break]) -> None:
        self.breaks = breaks
        self.links: dict[int, Link] = {}
        self.lock = threading.Condition()
        self.generations = Generations(range(workers), WHOLE)
        self.plans: dict[int, Plan] = {}
        self.called: set[int] = set()
        self.training = set(range(workers))

    def link(self, plan: Plan) -> Link:
        with self.lock:
            return self.links.setdefault(plan.generation, Link(plan.members))

    def decide(self) -> None:
        self.called |= set(self.generations.calls())
        plan = self.generations.plan()
        if plan is not None:
            self.plans |= dict.fromkeys(plan.members, plan)
        self.lock.notify_all()

    def gone(self, worker: int) -> None:
        with self.lock:
            self.generations.gone(worker)
            self.training.discard(worker)
            self.decide()

    def rest(self, worker: int) -> bool:
        """Wait until all have finished; True if the worker is called before that."""
        with self.lock:
            self.training.discard(worker)
            self.decide()
            self.lock.wait_for(lambda: worker in self.called or not self.training, PATIENCE)
            called = worker in self.called
            self.called.discard(worker)
            return called


@dataclass
class Asking:
    """One worker's end of the hub, as the exchange sees it."""

    hub: Hub
    worker: int

    def park(self, parked: Parked) -> Plan:
        hub = self.hub
        with hub.lock:
            hub.generations.parked(self.worker, parked)
            hub.called.discard(self.worker)
            hub.decide()
            told = hub.lock.wait_for(lambda: hub.plans.pop(self.worker, None), PATIENCE)
            assert told, "no plan"
            return told

    def broken(self, generation: int) -> bool:
        return False

    def put(self, generation: int, key: str, value: bytes) -> None: ...

    def got(self, generation: int, key: str) -> bytes | None:
        return None


def fake_group(hub: Hub) -> type:
    class Fake:
        def __init__(self, plan: Plan, index: int, *_: Any) -> None:
            self.members, self.size = plan.members, len(plan.members)
            self._plan, self._index, self._link = plan, index, hub.link(plan)
            self._sums = self._swaps = 0

        def begin(self, values: Tensor) -> Tensor:
            return values

        def finish(self, values: Tensor) -> None:
            self._sums += 1
            now = next((b for b in hub.breaks if self._is(b)), None)
            if now is not None and self._index == now.victim and not now.finishers:
                raise Died
            all_of_them = self._swap(values)
            if now is not None and self._index not in now.finishers:
                raise Died if self._index == now.victim else PeerLost("somebody is gone")
            values.copy_(torch.stack(all_of_them).sum(0))

        def _swap(self, mine: Tensor) -> list[Tensor]:
            self._swaps += 1
            return self._link.swap(self._swaps, self._index, mine)

        def _is(self, fault: Break) -> bool:
            return (fault.generation, fault.sum) == (self._plan.generation, self._sums)

        def total(self, value: float, device: Any) -> float:
            values = torch.tensor([value], dtype=torch.float64)
            self.finish(values)
            return float(values)

        def hand_out(self, tensors: list[Tensor], source: int) -> None:
            for tensor in tensors:
                tensor.copy_(self._swap(tensor)[self.members.index(source)])

        def close(self) -> None:
            self._link.close(self._index)

    return Fake


class Ledger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.seen = nn.Parameter(torch.zeros(SAMPLES))


class Worker(threading.Thread):
    """Adds 1 to the number of every sample it has, as the loop would."""

    def __init__(self, hub: Hub, index: int, averaged: bool) -> None:
        super().__init__(daemon=True)
        self._hub, self.index, self._averaged = hub, index, averaged
        self.model = Ledger()
        self.trained: list[tuple[int, list[int]]] = []  # rounds that counted, and their samples
        self.wrong: BaseException | None = None

    def run(self) -> None:
        try:
            self._train()
        except Died:
            self._exchange.close()
            self._hub.gone(self.index)
        except BaseException as wrong:  # noqa: BLE001 - told by the test
            self.wrong = wrong
            self._exchange.close()
            self._hub.gone(self.index)

    def _made(self) -> Exchange:
        fields: dict[str, Any] = {"index": self.index, "workers": WORKERS, "rule": "sgd"}
        post = Post(**fields, hyper=Hyper(), groups=Asking(self._hub, self.index), regroups=True)
        if not self._averaged:
            return AllReduce(post, summed=True)
        return LocalSgd(Local(post), AllReduce(post, summed=False), EVERY, 1.0)

    def _train(self) -> None:
        replica = Replica(self.model)
        self._exchange = exchange = self._made()
        exchange.start(replica)
        lots = slices(Order(SAMPLES, 0), BATCH, self.index, WORKERS, EPOCHS, None)
        while (lot := next(lots, None)) is not None:
            grad = torch.zeros(SAMPLES)
            # Added up, or a mean of what each has done by itself.
            whole = lot.whole if exchange.summed else len(lot.rows)
            grad[torch.from_numpy(lot.rows)] = -1.0 / whole
            self.model.seen.grad = grad
            gradient = Gradient(len(lot.rows), lot.whole, float(WHOLE), False)
            outcome = exchange.step(gradient, lambda: 0.0)
            if outcome.again:
                lots.go_on(lot.round, outcome.share)
                continue
            self.trained.append((lot.round, lot.rows.tolist()))
            if outcome.share is not None:
                lots.go_on(lot.round + 1, outcome.share)
            if outcome.stop:
                break
        exchange.finish()
        while self._hub.rest(self.index):
            exchange.regroup()
        exchange.close()


def trained(
    monkeypatch: pytest.MonkeyPatch, averaged: bool, breaks: list[Break]
) -> dict[int, Worker]:
    """Those that lived."""
    hub = Hub(WORKERS, breaks)
    monkeypatch.setattr(allreduce, "Group", fake_group(hub))
    workers = [Worker(hub, index, averaged) for index in range(WORKERS)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(PATIENCE * 2)
        assert not worker.is_alive()
        if worker.wrong is not None:
            raise worker.wrong
    dead = {fault.victim for fault in breaks}
    return {worker.index: worker for worker in workers if worker.index not in dead}


APART = [
    [Break(0, 7, victim=2)],
    [Break(0, 7, victim=2, finishers={0})],
    [Break(0, 7, victim=2, finishers={1})],
    [Break(0, 7, victim=0, finishers={1, 2})],
    [Break(0, 1, victim=0, finishers={2})],
    [Break(0, 5, victim=1, finishers={0}), Break(1, 3, victim=0)],
    [Break(0, 5, victim=1, finishers={2}), Break(1, 1, victim=0, finishers={2})],
]
ROUNDS = EPOCHS * SAMPLES // WHOLE
AT_THE_END = [
    [Break(0, ROUNDS, victim=2)],
    [Break(0, ROUNDS, victim=2, finishers={0})],
    [Break(0, ROUNDS, victim=0, finishers={1, 2})],
]
AVERAGED_AT_THE_END = [[Break(0, ROUNDS // EVERY, 2)], [Break(0, ROUNDS // EVERY, 2, {1})]]


@pytest.mark.parametrize("breaks", APART + AT_THE_END, ids=str)
def test_every_sample_counts_and_all_are_equal(
    breaks: list[Break], monkeypatch: pytest.MonkeyPatch
) -> None:
    living = trained(monkeypatch, averaged=False, breaks=breaks)
    first, *others = (worker.model.seen.detach() for worker in living.values())
    for other in others:
        assert torch.equal(first, other)
    torch.testing.assert_close(first, torch.full((SAMPLES,), float(EPOCHS)), rtol=0, atol=1e-4)
    for worker in living.values():
        assert [round_ for round_, _ in worker.trained] == list(range(ROUNDS))


@pytest.mark.parametrize("breaks", APART + AVERAGED_AT_THE_END, ids=str)
def test_averages_are_of_those_that_are_there(
    breaks: list[Break], monkeypatch: pytest.MonkeyPatch
) -> None:
    living = trained(monkeypatch, averaged=True, breaks=breaks)
    first, *others = (worker.model.seen.detach() for worker in living.values())
    for other in others:
        assert torch.equal(first, other)
    # All there is was counted, as much as was to be: the others' samples stand for those missing.
    assert first.sum() == pytest.approx(EPOCHS * SAMPLES, rel=1e-4)
    for round_ in range(ROUNDS):
        mine = [rows for w in living.values() for r, rows in w.trained if r == round_]
        flat = [row for rows in mine for row in rows]
        assert len(flat) == len(set(flat)), f"two had the same samples in round {round_}"
        # At most one averaging more goes on with the shares that were; then all are dealt anew.
        dealt_anew = EVERY * (sum(fault.sum for fault in breaks) + len(breaks))
        assert len(flat) == WHOLE or round_ < dealt_anew
