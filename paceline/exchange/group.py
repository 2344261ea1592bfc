"""Workers that meet as a process group of torch's: gloo on CPUs, NCCL on GPUs.

A group cannot be repaired. Once a peer is gone every verb raises PeerLost, whoever gets that
closes its end, and so the others learn of it too: gloo reports a closed connection at once. Not so
of one that it had not come to use, as when a peer dies while the group forms: whoever waits
therefore hears the supervisor, too, and cuts the connections. Nor of a message that it was about to
write when the peer died: that it has forgotten, and who waits for it would until its patience ends.
Such a group is left as it is, for taking it apart would wait as long.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch._C import _distributed_c10d as c10d

from paceline.errors import PeerLost
from paceline.exchange.base import Groups
from paceline.exchange.directory import Directory
from paceline.transport.cutting import Opened, cut, sockets
from paceline.transport.slate import OTHERS, Slate
from paceline.transport.sockets import PATIENCE
from paceline.types import Plan

FORMING = 3.0  # seconds: when a plan is told all are there, or dead
REACHING = 1.0  # seconds for gloo to reach each of those that are, for it looks at nothing else
LISTEN = timedelta(seconds=0.5)  # between looks, in a long wait, whether the group is broken

Given = TypeVar("Given")

_left: list[Any] = []  # backends in which something is pending for ever: not to be taken apart


class Group:
    """The members of a plan, as one of them, worker `index`, sees them. One alone meets nobody."""

    def __init__(
        self,
        plan: Plan,
        index: int,
        device: torch.device,
        cores: tuple[int, ...],
        groups: Groups,
        regroups: bool,
        slate: Slate,
    ) -> None:
        """All met, or PeerLost; in seconds if there can be another after it, and it `regroups`."""
        self.members = plan.members
        self.size = len(plan.members)
        self._generation = plan.generation
        seconds = FORMING if regroups else PATIENCE
        self._store = Directory(groups, plan.generation, seconds)  # torch looks, but holds it not
        self._groups = groups
        self._slate = slate
        self._listens = regroups and device.type != "cuda"  # NCCL watches for itself
        self._backend: Any = None
        self._opened: frozenset[Opened] = frozenset()
        self._hangs = False
        if self.size > 1:
            before, at = sockets(), slate.waits(OTHERS)
            with floating(cores):
                self._backend = _guarded(
                    lambda: _formed(plan, index, device, self._store, regroups)
                )
            self._opened = sockets() - before
            slate.back(at)

    def begin(self, values: Tensor) -> Any:
        """Begin to add up everybody's values, in place."""
        try:
            return self._backend.allreduce([values])
        except RuntimeError as wrong:
            raise _lost(wrong) from wrong

    def finish(self, summing: Any) -> None:
        """Wait until that is done, or the group is known to be broken."""
        before = self._slate.waits(OTHERS)
        self._wait(summing)
        self._slate.back(before)

    def _wait(self, summing: Any) -> None:
        severed = False
        while self._listens and not summing.is_completed():
            with suppress(RuntimeError):  # not yet, or it has failed: asked once more below
                summing.wait(LISTEN)
            if summing.is_completed() or not self._groups.broken(self._generation):
                continue
            if severed:
                self._hangs = True
                raise PeerLost("a worker left the all-reduce in the middle of a message.")
            cut(self._opened)
            severed = True
        _guarded(summing.wait)

    def total(self, value: float, device: torch.device) -> float:
        """The sum of everybody's."""
        values = torch.tensor([value], dtype=torch.float64, device=device)
        if self.size > 1:
            self.finish(self.begin(values))
        return float(values)

    def hand_out(self, tensors: list[Tensor], source: int) -> None:
        """Give what the worker `source` has in these to all."""
        if self.size == 1:
            return
        options = c10d.BroadcastOptions()
        options.rootRank = self.members.index(source)
        for tensor in tensors:
            if tensor.numel():
                self.finish(_guarded(partial(self._backend.broadcast, [tensor], options)))

    def close(self) -> None:
        """Part without waiting for anybody."""
        backend, self._backend = self._backend, None
        if backend is not None:
            backend.abort()
            if self._hangs:
                _left.append(backend)


def _formed(plan: Plan, index: int, device: torch.device, store: Directory, regroups: bool) -> Any:
    """A backend by itself, not torch's one default group: there may be many in a life.

    First all say that they are here: torch would try to reach one that is known to be dead.
    """
    rank, size = plan.members.index(index), len(plan.members)
    store.set(f"here-{rank}", b"")
    store.wait([f"here-{other}" for other in range(size)])
    if device.type == "cuda":
        options = c10d.ProcessGroupNCCL.Options()
        options._timeout = timedelta(seconds=PATIENCE)
        return c10d.ProcessGroupNCCL(store, rank, size, options)
    reaching = timedelta(seconds=REACHING if regroups else PATIENCE)
    made = c10d.ProcessGroupGloo(store, rank, size, reaching)
    made._set_default_timeout(timedelta(seconds=PATIENCE))  # others may compute for long
    return made


def _guarded(act: Callable[[], Given]) -> Given:
    try:
        return act()
    except RuntimeError as wrong:
        raise _lost(wrong) from wrong


def _lost(wrong: RuntimeError) -> PeerLost:
    return PeerLost(f"a worker left the all-reduce: {str(wrong).strip().splitlines()[0]}")


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
