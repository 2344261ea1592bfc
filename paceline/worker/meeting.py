"""How a worker meets the others: from the supervisor's roster to its post in the exchange."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

import torch.distributed as dist

from paceline.exchange.base import Post
from paceline.server.rules import Hyper
from paceline.spec import RunSpec
from paceline.transport import memory
from paceline.transport.sockets import PATIENCE


class Meeting:
    """For all-reduce, worker-0 keeps the store through which the workers find one another."""

    def __init__(self, spec: RunSpec, index: int) -> None:
        self.address = ""
        self._store: dist.TCPStore | None = None
        if spec.strategy != "allreduce" or spec.workers == 1:
            return
        if spec.host == "127.0.0.1":  # gloo would otherwise pick the address of the host's name
            os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        if index == 0:
            self._store = dist.TCPStore(
                spec.host, 0, is_master=True, wait_for_workers=False,
                timeout=timedelta(seconds=PATIENCE),
            )  # fmt: skip
            self.address = f"{spec.host}:{self._store.port}"

    def close(self) -> None:
        self._store = None


def post_from(
    roster: dict[str, Any], spec: RunSpec, index: int, fds: dict[str, int], size: int
) -> Post:
    """This worker's post, with the shared memory mapped where there is some."""
    shared = roster["transport"] == "shm"
    return Post(
        index=index,
        workers=spec.workers,
        rule=spec.optimizer or "sgd",
        hyper=Hyper.of(spec.model_dump()),
        secret=bytes.fromhex(roster["secret"]),
        transport=roster["transport"],
        servers=tuple(
            (s["role"], s["address"], s["start"], s["stop"]) for s in roster["servers"]
        ),
        meeting=roster["meeting"],
        params=memory.floats(fds["params"], (roster["places"], size)) if shared else None,
        grads=memory.floats(fds["grads"], (spec.workers, size)) if shared else None,
        place=roster["place"],
    )
