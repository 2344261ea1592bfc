"""The strategies by name, and what each needs. No torch here: the command line reads this."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """What the rest of the program must know of a strategy to place it.

    `samples` says who gets which samples: `slices` of one global batch a round (the result does
    not depend on the number of workers), or `leases` of small ranges (nobody waits for anybody).
    `options` are the fields of a spec that this strategy understands and some others do not.
    """

    name: str
    summary: str
    gate: str = ""  # the gate its servers use; no gate, no servers
    transports: tuple[str, ...] = ()  # those it can use, where there is a choice; best first
    options: tuple[str, ...] = ()
    samples: Literal["slices", "leases"] = "slices"
    many: bool = True  # more than one worker makes sense
    shared: bool = True  # all workers end with the same parameters
    alone: bool = False  # workers exchange nothing, so what one of them has can be kept by itself
    tables: bool = False  # it can train models with sparse tables

    @property
    def served(self) -> bool:
        return bool(self.gate)

    @property
    def pooled(self) -> bool:
        """Whether the gradients of all workers become one update."""
        averages = "sync_every" in self.options  # of parameters, after updates of each one's own
        return self.shared and self.samples == "slices" and not averages

    @property
    def own_rule(self) -> bool:
        """Whether each worker applies gradients to parameters of its own.

        Then a loop of the user's keeps its optimizer; otherwise a rule of ours takes its place.
        """
        return not self.gate and self.name != "hogwild"


_SERVED = ("servers", "port", "codec", "tls", "replicas")

STRATEGIES: dict[str, Strategy] = {
    s.name: s
    for s in (
        Strategy(
            name="single",
            summary="one worker, no exchange",
            many=False,
            alone=True,
            tables=True,
        ),
        Strategy(
            name="independent",
            summary="many workers, no exchange: the limit of what distributing can bring",
            shared=False,
            alone=True,
            tables=True,
        ),
        Strategy(
            name="allreduce",
            summary="workers average their gradients among themselves each round (gloo, NCCL)",
            options=("balance",),
        ),
        Strategy(
            name="ps-sync",
            summary="servers apply one averaged gradient a round, when all workers have pushed",
            gate="all",
            transports=("shm", "tcp"),
            options=(*_SERVED, "backup", "balance"),
            tables=True,
        ),
        Strategy(
            name="ps-async",
            summary="servers apply each gradient as it comes; nobody waits for anybody",
            gate="at-once",
            transports=("shm", "tcp"),
            options=(*_SERVED, "damp_stale"),
            samples="leases",
            tables=True,
        ),
        Strategy(
            name="ssp",
            summary="as ps-async, but nobody gets more than --bound rounds ahead of the slowest",
            gate="bounded",
            transports=("shm", "tcp"),
            options=(*_SERVED, "bound", "damp_stale"),
            samples="leases",
            tables=True,
        ),
        Strategy(
            name="local-sgd",
            summary="workers train alone and average their parameters every --sync-every steps",
            transports=("shm", "tcp"),
            options=("sync_every", "outer_lr", "outer_momentum"),
        ),
        Strategy(
            name="hogwild",
            summary="workers change the same shared memory, without locks and without waiting",
            transports=("shm",),
            options=("damp_stale",),
            samples="leases",
            tables=True,
        ),
    )
}
