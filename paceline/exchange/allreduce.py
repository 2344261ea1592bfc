"""`allreduce`: workers add up their gradients among themselves, then each applies the sum.

Two more floats ride at the end of the gradient: how many workers were asked to stop, so that all
end after the same round, and how many for a checkpoint, which all keep after the same round. Where
shares are balanced, everybody's samples and seconds ride there too: each adds its own to zeros, so
all get the same numbers and compute the same shares. While gloo's threads add up, the next batch
is made.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch._C._distributed_c10d import TCPStore

from paceline.errors import PeerLost
from paceline.exchange.balance import Balance, Pace
from paceline.exchange.base import Exchange, Gradient, Outcome, Post
from paceline.exchange.replica import Replica
from paceline.server.rules import Layers, make_rule
from paceline.transport.sockets import PATIENCE


class AllReduce(Exchange):
    def __init__(self, post: Post, summed: bool) -> None:
        self._post = post
        self.summed = summed
        self._version = 0
        self._balance = Balance(post.whole, range(post.workers)) if post.balance else None

    def start(self, replica: Replica) -> None:
        post = self._post
        self._replica = replica
        layers = Layers(replica.layers)
        self._rule = make_rule(post.rule, replica.size, post.hyper, layers=layers)
        paces = 2 * post.workers if self._balance is not None else 0
        self._sum = torch.zeros(replica.size + 2 + paces, device=replica.device)
        self._grad, self._asked = self._sum[: replica.size], self._sum[replica.size :][:2]
        self._paces = self._sum[replica.size + 2 :]
        flat = [(replica.flat[at], at) for at in self._rule.chunks()]
        self._parts = [(part, part, self._grad[at], at) for part, at in flat]
        if post.workers > 1:
            host, _, port = post.meeting.rpartition(":")
            store = TCPStore(host, int(port), is_master=False, timeout=timedelta(seconds=PATIENCE))
            backend = "nccl" if replica.device.type == "cuda" else "gloo"
            with floating(post.cores):
                self._guarded(
                    lambda: dist.init_process_group(
                        backend,
                        store=store,
                        rank=post.index,
                        world_size=post.workers,
                        timeout=timedelta(seconds=PATIENCE),
                    )
                )
            self._group = dist.distributed_c10d._get_default_group()
            self._guarded(lambda: dist.broadcast(replica.flat, src=0))

    def step(self, gradient: Gradient, meanwhile: Callable[[], float]) -> Outcome:
        began, seconds = time.perf_counter(), gradient.spent()
        if gradient.weight:
            self._replica.gather(
                self._grad, 1.0 if self.summed else gradient.weight / gradient.whole
            )
        else:
            self._grad.zero_()
        self._asked.copy_(torch.tensor([float(gradient.stopping), float(gradient.keeping)]))
        if self._balance is not None:
            self._paces.zero_()
            mine = torch.tensor([float(gradient.weight), seconds])
            self._paces[2 * self._post.index :][:2].copy_(mine)
        elsewhere = 0.0
        if self._post.workers > 1:
            # Past torch's wrapper around it, which costs as much as a small gradient's copy.
            summing = self._guarded(lambda: self._group.allreduce([self._sum]))
            elsewhere = meanwhile()
            self._guarded(summing.wait)
            # A ring moves each float twice, less each worker's own share.
            moved = 2 * (self._post.workers - 1) * self._sum.nbytes // self._post.workers
            self.sent += moved
            self.received += moved
        reduced = time.perf_counter()
        self._version += 1
        self._apply(gradient.lr)
        stopping, keeping = self._asked.tolist()
        return Outcome(
            exchange=reduced - began - elsewhere,
            update=time.perf_counter() - reduced,
            version=self._version,
            share=self._shared_out(),
            stop=stopping > 0,
            keep=keeping == self._post.workers,
        )

    def _shared_out(self) -> tuple[int, int] | None:
        """This worker's share of the next round, if that is another."""
        if self._balance is None:
            return None
        told, mine = self._paces.tolist(), self._post.index
        paces = {w: Pace(int(told[2 * w]), told[2 * w + 1]) for w in range(self._post.workers)}
        before = self._balance.shares[mine]
        self._balance.after(paces, paces.keys())
        after = self._balance.shares[mine]
        return after if after != before else None

    def keep(self) -> dict[str, Tensor]:
        """All have the same parameters and state: one of them keeps them."""
        kept = {"version": torch.tensor(self._version)}
        if self._post.index == 0:
            kept["parameters"] = self._replica.flat.detach().to("cpu", copy=True)
            kept["state"] = self._rule.state.to("cpu", copy=True)
        return kept

    def restore(self, kept: dict[str, Tensor]) -> None:
        self._version = int(kept["version"])
        if self._post.index == 0:
            self._replica.restore(kept["parameters"])
            self._rule.state.copy_(kept["state"])
        if self._post.workers > 1:
            self._guarded(lambda: dist.broadcast(self._replica.flat, src=0))
            if self._rule.states:
                self._guarded(lambda: dist.broadcast(self._rule.state, src=0))

    def _apply(self, lr: float) -> None:
        if self._post.apply is not None:
            self._replica.scatter(self._grad)
            self._post.apply()
            return
        with torch.no_grad():
            self._rule.update(self._parts, lr, self._version)

    def _guarded(self, act: Callable[[], Any]) -> Any:
        try:
            return act()
        except RuntimeError as wrong:
            first = str(wrong).strip().splitlines()[0]
            raise PeerLost(f"a worker left the all-reduce: {first}") from wrong

    def close(self) -> None:
        if self._post.workers > 1 and dist.is_initialized():
            dist.destroy_process_group()


@contextmanager
def floating(cores: tuple[int, ...]) -> Iterator[None]:
    """Threads started in here may run on any of the run's cores, not only on this worker's.

    gloo's would otherwise wait for the very thread that waits for them to give up its core.
    """
    if not cores or not hasattr(os, "sched_setaffinity"):
        yield
        return
    own = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, own)
