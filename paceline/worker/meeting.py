"""How a worker meets the others: from the supervisor's roster to its post in the exchange."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from torch import Tensor
from torch._C._distributed_c10d import TCPStore

from paceline.exchange.base import Post
from paceline.exchange.layout import layout
from paceline.server.rules import Hyper
from paceline.spec import RunSpec
from paceline.transport import memory
from paceline.transport.control import Control
from paceline.transport.sockets import PATIENCE


class Meeting:
    """For a process group, worker-0 keeps the store through which the workers find one another."""

    def __init__(self, spec: RunSpec, index: int) -> None:
        self.address = ""
        self._store: TCPStore | None = None
        if spec.workers == 1 or not _in_a_group(spec):
            return
        if spec.host == "127.0.0.1":  # gloo would otherwise pick the address of the host's name
            os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        if index == 0:
            self._store = TCPStore(
                spec.host, 0, is_master=True, wait_for_workers=False,
                timeout=timedelta(seconds=PATIENCE),
            )  # fmt: skip
            self.address = f"{spec.host}:{self._store.port}"

    def close(self) -> None:
        self._store = None


def post_from(
    roster: dict[str, Any],
    spec: RunSpec,
    index: int,
    fds: dict[str, int],
    size: int,
    control: Control,
    apply: Callable[[], None] | None = None,
    life: int = 0,
) -> Post:
    """This worker's post, with the shared memory mapped where there is some."""
    addresses: list[str] = list(roster["addresses"])

    def where() -> list[str]:
        """As the supervisor has told it last."""
        while (moved := control.take("moved")) is not None:
            addresses[moved["server"]] = moved["address"]
        return addresses

    need = layout(spec, size, len(roster["shards"]), 0)
    shared = spec.transport == "shm"

    def rows(name: str, count: int) -> Tensor | None:
        return memory.floats(fds[name], (count, size)) if shared and count else None

    return Post(
        index=index,
        workers=spec.workers,
        life=life,
        returns=spec.max_restarts > 0,
        lease=spec.lease,
        rule=spec.optimizer or "sgd",
        hyper=Hyper.of(roster["hyper"]),
        secret=bytes.fromhex(roster["secret"]),
        certificate=roster["certificate"],
        shards=tuple((start, stop) for start, stop in roster["shards"]),
        block=roster["block"],
        addresses=tuple(addresses),
        where=where,
        meeting=roster["meeting"],
        board=fds["board"] if shared else None,
        params=rows("params", need.params),
        grads=rows("grads", need.grads),
        state=rows("state", need.state),
        journal=memory.floats(fds["journal"], (need.journal,)) if shared and need.journal else None,
        cores=tuple(roster["cores"]),
        codec=spec.codec,
        bound=spec.bound or 0,
        backup=spec.backup,
        balance=spec.step_samples * spec.workers if spec.balance else 0,
        damp_stale=spec.damp_stale,
        spin=roster["spin"],
        apply=apply,
    )


def _in_a_group(spec: RunSpec) -> bool:
    """Whether the workers form a process group of torch's."""
    if spec.strategy == "local-sgd":
        return spec.transport == "tcp" or (spec.transport == "auto" and not memory.available())
    return spec.strategy == "allreduce"
