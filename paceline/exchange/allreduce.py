"""`allreduce`: workers add up their gradients among themselves, then each applies the sum.

Three more floats ride at the end of the gradient: how many workers were asked to stop, so that all
end after the same round, how many for a checkpoint, which all keep after the same round, and how
many to leave the group, so that all leave it after the same round and meet again with one more.
Where shares are balanced, everybody's samples and seconds ride there too: each adds its own to
zeros, so all get the same numbers and compute the same shares. While gloo's threads add up, the
next batch is made.

A worker that dies takes its group along. The others park, and a plan of the supervisor's says who
meets again, and who among them is furthest: all go on from its parameters and state.

    one had applied the round, with everybody's gradients in it ─► it is done, for those behind too
    nobody had                                                  ─► it is taken again, by those left
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from torch import Tensor

from paceline.errors import PeerLost
from paceline.exchange.balance import Balance, Pace
from paceline.exchange.base import Among, Copied, Exchange, Gradient, Outcome, Post
from paceline.exchange.group import Group
from paceline.exchange.replica import Replica
from paceline.exchange.traffic import Ring
from paceline.server.rules import Layers, make_rule
from paceline.server.shards import cut
from paceline.transport.slate import PARKED
from paceline.types import NOTHING, Parked, Plan, Traffic

ASKED = 3  # floats: to stop, for a checkpoint, to leave
TRIES = 20  # groups in a row of which no round came


class AllReduce(Exchange):
    """`summed` gradients are of shares that the workers know, so a round is taken again with other
    shares. Others are given again as they are, and weighed by the samples that are then there.
    """

    def __init__(self, post: Post, summed: bool) -> None:
        self._post = post
        self.summed = summed
        self._version = NOTHING if post.life else 0
        self.generation = NOTHING if post.life else 0
        self._group: Group | None = None
        self._ring = Ring()
        self._balance: Balance | None = None
        self._share: tuple[int, int] | None = None  # to be told with the next outcome
        self._later: tuple[int, int] | None = None  # to be told with that of the next round
        self._fewer = False  # whether some are gone whose samples were counted on
        self._tries = 0
        self._parted = False  # the others go on without this worker

    @property
    def sent(self) -> int:  # type: ignore[override]
        return self._ring.sent

    @property
    def received(self) -> int:  # type: ignore[override]
        return self._ring.received

    def traffic(self) -> tuple[Traffic, ...]:
        return self._ring.told()

    def start(self, replica: Replica) -> None:
        post = self._post
        self._replica = replica
        layers = Layers(replica.layers)
        self._rule = make_rule(post.rule, replica.size, post.hyper, layers=layers)
        paces = 2 * post.room if post.balance else 0
        self._sum = torch.zeros(replica.size + ASKED + paces, device=replica.device)
        self._grad, self._asked = self._sum[: replica.size], self._sum[replica.size :][:ASKED]
        self._paces = self._sum[replica.size + ASKED :]
        flat = [(replica.flat[at], at) for at in self._rule.chunks()]
        self._parts = [(part, part, self._grad[at], at) for part, at in flat]
        self._meet(None if post.life else Plan.first(post.crew), left=True)
        self.round = self.taken = self._version
        self.share = self._told()

    def step(self, gradient: Gradient, meanwhile: Callable[[], float]) -> Outcome:
        began, seconds, waited = time.monotonic(), gradient.spent(), 0.0
        while (times := self._reduce(gradient, seconds, meanwhile)) is None:
            before, lost = self._version, time.monotonic()
            self._meet(None, left=False, broken=True)
            waited += time.monotonic() - lost
            done = self._version > before
            if done or self.summed:
                return Outcome(
                    began=began,
                    ended=time.monotonic(),
                    push=lost - began,
                    wait=waited,
                    version=self._version,
                    share=self._told(),
                    stop=self._ends,
                    again=not done and not self._ends,
                )
        gathered, elsewhere = times
        reduced = time.monotonic()
        self._version += 1
        self._apply(gradient.lr)
        updated = time.monotonic()
        stopping, keeping, leaving = self._asked.tolist()
        size = self._group.size if self._group is not None else 1
        share = self._shared_out()
        ended = updated
        if leaving and not stopping:
            self._leave()
            ended = time.monotonic()
        return Outcome(
            began=began,
            ended=ended,
            push=gathered - began - waited,
            pull=reduced - gathered - elsewhere,
            wait=waited + ended - updated,
            update=updated - reduced,
            version=self._version,
            share=self._told() or share,
            stop=stopping > 0 or self._ends,
            keep=keeping == size,
        )

    @property
    def _ends(self) -> bool:
        return self.over or self._parted

    def _reduce(
        self, gradient: Gradient, seconds: float, meanwhile: Callable[[], float]
    ) -> tuple[float, float] | None:
        """Add up: when the gradient was gathered, and the seconds spent otherwise meanwhile; or
        None if a peer is gone."""
        assert self._group is not None
        group, whole = self._group, float(gradient.whole)
        try:
            if self._fewer and not self.summed:
                whole = group.total(gradient.weight, self._replica.device)
            if gradient.weight:
                self._replica.gather(self._grad, 1.0 if self.summed else gradient.weight / whole)
            else:
                self._grad.zero_()
            asked = (gradient.stopping, gradient.keeping, gradient.leaving)
            self._asked.copy_(torch.tensor(asked, dtype=torch.float32))
            if self._balance is not None:
                self._paces.zero_()
                mine = torch.tensor([float(gradient.weight), seconds])
                self._paces[2 * self._post.index :][:2].copy_(mine)
            gathered, elsewhere = time.monotonic(), 0.0
            if group.size > 1:
                summing = group.begin(self._sum)
                elsewhere = meanwhile()
                group.finish(summing)
                # A ring moves each float twice, less each worker's own share.
                moved = 2 * (group.size - 1) * self._sum.nbytes // group.size
                self._ring.add(moved)
        except PeerLost:
            if not self._can_meet():
                raise
            return None
        self._fewer, self._tries = False, 0
        if self._later is not None:
            self._share, self._later = self._later, None
        return gathered, elsewhere

    def regroup(self) -> None:
        self.over = True
        self._leave()

    def _leave(self) -> None:
        self._meet(None, left=True)

    def _meet(self, plan: Plan | None, *, left: bool, broken: bool = False) -> None:
        """Leave the group there is and be in another: that of the plan, or of the next that holds.

        `left` says that this worker is between two rounds, `broken` that the group is.
        """
        formed = False
        while not formed:
            self._close()
            if plan is None:
                plan = self._plan(left, broken)
            self._follow(plan)
            if self._parted:
                return
            try:
                self._group = self._formed(plan)
                self._take_from(plan.source, plan.version)
                formed = True
            except PeerLost:
                if not self._can_meet():
                    raise
                plan, broken = None, True
        if self.over:
            self._close()

    def _formed(self, plan: Plan) -> Group:
        post = self._post
        assert post.groups is not None
        device = self._replica.device
        self._ring.form(plan.members, post.index, known=device.type == "cpu")
        where = device, post.cores
        return Group(plan, post.index, *where, post.groups, post.regroups, post.slate)

    def _can_meet(self) -> bool:
        """Whether to try again, now that a peer is gone; not for ever, if no round comes of it."""
        self._tries += 1
        return self._post.regroups and self._tries < TRIES

    def _plan(self, left: bool, broken: bool) -> Plan:
        assert self._post.groups is not None
        before = self._post.slate.at(PARKED)
        plan = self._post.groups.park(
            Parked(
                generation=self.generation,
                version=self._version,
                left=left,
                over=self.over,
                broken=broken,
            )
        )
        self._post.slate.back(before)
        return plan

    def _follow(self, plan: Plan) -> None:
        """Take note of a plan, whether its group will hold or not."""
        self.generation = plan.generation
        self.over = self.over or plan.over
        if self._post.index not in plan.members:
            self._parted = True
            return
        if self._post.balance:
            self._balance = Balance(self._post.whole, plan.members)
        if not plan.shares:
            return
        share = plan.shares[plan.members.index(self._post.index)]
        if plan.between or self.summed:
            self._share, self._later, self._fewer = share, None, False
        else:  # some have taken steps of the next round: all do, with the shares they had
            self._later, self._fewer = share, True

    def _take_from(self, source: int, version: int) -> None:
        """Be as the source is, to the bit: whole or not at all, for it may die in the middle.

        Buffers are each worker's own; only one that has come back takes another's.
        """
        assert self._group is not None
        shared = [self._replica.flat]
        own: list[Tensor] = []
        if version:  # at first there is nothing but parameters
            shared.append(self._rule.state)
            own = self._replica.buffers
        new, mine = self._version == NOTHING, source == self._post.index
        spare = new or mine or not version  # nothing here could be lost
        taken = shared if spare else [torch.empty_like(tensor) for tensor in shared]
        kept = [b.clone(memory_format=torch.contiguous_format) for b in own]
        self._group.hand_out(taken + kept, source)
        if not spare:
            for tensor, value in zip(shared, taken, strict=True):
                tensor.copy_(value)
        if new:
            for tensor, value in zip(own, kept, strict=True):
                tensor.copy_(value)
        self._version = version

    def _told(self) -> tuple[int, int] | None:
        share, self._share = self._share, None
        return share

    def _shared_out(self) -> tuple[int, int] | None:
        """This worker's share of the next round, if that is another."""
        if self._balance is None:
            return None
        told, mine = self._paces.tolist(), self._post.index
        before = self._balance.shares
        paces = {w: Pace(int(told[2 * w]), told[2 * w + 1]) for w in before}
        self._balance.after(paces, paces.keys())
        after = self._balance.shares[mine]
        return after if after != before[mine] else None

    def keep(self, among: Among, copied: Copied) -> dict[str, Tensor]:
        """All have the same parameters and state: each keeps an even share of them."""
        begin, end = cut(self._replica.size, among.of)[among.number]
        return {
            "version": torch.tensor(self._version),
            "parameters": copied("parameters", self._replica.flat[begin:end]),
            "state": copied("state", self._rule.state[:, begin:end]),
        }

    def restore(self, kept: dict[str, Tensor]) -> None:
        """All hand out what they have kept; whoever has not got all of it yet has nothing."""
        assert self._group is not None
        self._version, crew = NOTHING, self._post.crew
        try:
            if self._group.members == crew:
                for worker, (begin, end) in zip(
                    crew, cut(self._replica.size, len(crew)), strict=True
                ):
                    self._take_share(worker, slice(begin, end), kept)
                self._version = int(kept["version"])
                return
        except PeerLost:
            if not self._can_meet():
                raise
        self._meet(None, left=True, broken=True)
        self.share = self._told()

    def _take_share(self, worker: int, share: slice, kept: dict[str, Tensor]) -> None:
        """Take what one of the crew has kept; `kept` is what this worker has."""
        assert self._group is not None
        params, state = self._replica.flat[share], self._rule.state[:, share]
        if worker == self._post.index:
            self._replica.restore(kept["parameters"], share)
            state.copy_(kept["state"])
        self._group.hand_out([params, *state], worker)  # rows of a state are each in one piece

    def _apply(self, lr: float) -> None:
        if self._post.apply is not None:
            self._replica.scatter(self._grad)
            self._post.apply()
            return
        with torch.no_grad():
            self._rule.update(self._parts, lr, self._version)

    def leave(self) -> None:
        self._close()

    def close(self) -> None:
        self._close()

    def _close(self) -> None:
        group, self._group = self._group, None
        if group is not None:
            group.close()
