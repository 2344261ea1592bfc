"""The strategies by name, and what each needs. No torch here: the command line reads this."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """What the rest of the program must know of a strategy to place it.

    `samples` says who gets which samples: `slices` of one global batch a round (the result does
    not depend on the number of workers), or `leases` of small ranges (nobody waits for anybody).
    """

    name: str
    summary: str
    gate: str = ""  # the gate its servers use; no gate, no servers
    samples: Literal["slices", "leases"] = "slices"
    many: bool = True  # more than one worker makes sense
    shared: bool = True  # all workers end with the same parameters

    @property
    def served(self) -> bool:
        return bool(self.gate)


STRATEGIES: dict[str, Strategy] = {
    s.name: s
    for s in (
        Strategy(name="single", summary="one worker, no exchange", many=False),
        Strategy(
            name="independent",
            summary="many workers, no exchange: the limit of what distributing can bring",
            shared=False,
        ),
        Strategy(
            name="allreduce",
            summary="workers average their gradients among themselves each round (gloo, NCCL)",
        ),
        Strategy(
            name="ps-sync",
            summary="servers apply one averaged gradient a round, when all workers have pushed",
            gate="all",
        ),
        Strategy(
            name="ps-async",
            summary="servers apply each gradient as it comes; nobody waits for anybody",
            gate="at-once",
            samples="leases",
        ),
    )
}
